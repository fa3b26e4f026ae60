import { setImmediate } from 'node:timers/promises'
import type { Log } from '../../../shared/log.ts'
import { reasonOf } from '../../../shared/settings/problems.ts'
import { SettingsError } from '../../../shared/settings/settings-error.ts'
import { doInTurns } from '../../../shared/steps.ts'
import type { ReloadOutcome } from '../../admin/api/api-reload.ts'
import { compareTables, type TableChange } from '../../config/reload/table-change.ts'
import { hashTable } from '../../config/reload/table-hash.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { Notify } from '../../telemetry/webhooks/webhook-event.ts'
import type { ConfigState } from '../../telemetry/metrics/metrics.ts'
import { ReloadLog, rulesIn } from './reload-log.ts'

/** Reloaded settings, or every problem that prevented the reload. */
export type ReadSettings =
  | { readonly settings: GatewaySettings; readonly warnings: readonly string[] }
  | { readonly mistakes: readonly string[] }

/** The source of the settings. */
export type SettingsSource = {
  /** The settings at the start, before they were adapted to this machine. */
  readonly written: GatewaySettings
  /** Reads them anew. Rejects where that failed, whatever they are. */
  load(): Promise<ReadSettings>
  /**
   * Watches the settings file, whether it is there or not.
   *
   * @param changed called when it has other content than at the start, and whenever that changes again
   * @returns how to stop
   */
  watch(changed: () => void): () => void
  /** A text that differs whenever the settings file has changed. */
  signature(): string
}

/** A table of limits that is ready to take effect. Neither promise rejects. */
export type PreparedTable = {
  commit(): void | Promise<void>
  abort(): void
}

export type Reloader = {
  /** Reads the settings again and applies their table of limits, or changes nothing. One at a time; never rejects. */
  reload(trigger: 'signal' | 'file' | 'api'): Promise<ReloadOutcome>
  /** The current settings. */
  current(): GatewaySettings
  readConfig(): ConfigState
}

export type ReloaderOptions = {
  /** The settings of the start. */
  readonly running: GatewaySettings
  readonly source: SettingsSource
  /** Prepares a new table in every process; rejects if one cannot. */
  readonly prepare: (change: TableChange) => Promise<PreparedTable>
  /** Called when a new table takes effect. */
  readonly changed: () => void
  /** Called for each failed reload. */
  readonly notify?: Notify | undefined
  readonly log: Log
}

/** Makes the reloader of a gateway, in the process that reads its settings. */
export function createReloader(options: ReloaderOptions): Reloader {
  return new TableReloader(options)
}

class TableReloader implements Reloader {
  readonly #options: ReloaderOptions
  #running: GatewaySettings
  #state: ConfigState
  readonly #log: ReloadLog
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: ReloaderOptions) {
    this.#options = options
    this.#log = new ReloadLog(options.log)
    this.#running = options.running
    this.#state = { hash: hashTable(options.running), isLastRight: true, lastRightAtMs: Date.now() }
  }

  reload(trigger: 'signal' | 'file' | 'api'): Promise<ReloadOutcome> {
    const result = this.#last.then(() => this.#reload(trigger))
    this.#last = result
    return result
  }

  current(): GatewaySettings {
    return this.#running
  }

  readConfig(): ConfigState {
    return this.#state
  }

  async #reload(trigger: string): Promise<ReloadOutcome> {
    const signature = this.#options.source.signature()
    const read = await this.#readSettings()
    // The file is being written, and half of it may be valid. The watcher calls this again when the file has stopped changing.
    if (trigger === 'file' && this.#options.source.signature() !== signature) return { outcome: 'failed' }
    if ('mistakes' in read) return this.#refuse(trigger, read.mistakes)
    const change = await doInTurns(compareTables(this.#running, this.#options.source.written, read.settings))
    const hash = change.tableHash
    const isSame = hash === this.#state.hash && change.settings.limitsFile === this.#running.limitsFile
    const applied = isSame || (await this.#apply(change))
    if (applied instanceof SettingsError) return this.#refuse(trigger, applied.problems)
    if (!applied) {
      this.#state = { ...this.#state, isLastRight: false, mistakes: [notTaken] }
      this.#options.notify?.({ type: 'reload-failed', trigger, mistakes: [] })
      return { outcome: 'failed' }
    }
    this.#state = { hash, isLastRight: true, lastRightAtMs: Date.now() }
    await setImmediate()
    if (!isSame) this.#options.changed()
    await this.#log.reloaded(trigger, change, isSame, read.warnings)
    const { added, changed: changedRules, removed, routes, restart } = change
    return {
      outcome: isSame ? 'unchanged' : 'reloaded',
      tableHash: hash,
      rules: rulesIn(change),
      added,
      changed: changedRules,
      removed,
      routes,
      restart,
      warnings: read.warnings,
    }
  }

  #refuse(trigger: string, all: readonly string[]): ReloadOutcome {
    this.#state = { ...this.#state, isLastRight: false, mistakes: all }
    const mistakes = this.#log.refused(trigger, all)
    this.#options.notify?.({ type: 'reload-failed', trigger, mistakes })
    return { outcome: 'refused', mistakes: all }
  }

  async #readSettings(): Promise<ReadSettings> {
    try {
      const read = await this.#options.source.load()
      if ('mistakes' in read) return read
      // Removing the file must not put the built-in table in place of its limits.
      if (this.#running.configFile === undefined || read.settings.configFile !== undefined) return read
      return { mistakes: [`${this.#running.configFile}: missing, but the gateway read it at startup`] }
    } catch (error) {
      return { mistakes: [reasonOf(error)] }
    }
  }

  /** Returns the error if the processes find a mistake in a list of addresses, which only they read; false after any other failure. */
  async #apply(change: TableChange): Promise<boolean | SettingsError> {
    try {
      const prepared = await this.#options.prepare(change)
      this.#running = change.settings
      await prepared.commit()
      return true
    } catch (err) {
      if (err instanceof SettingsError) return err
      this.#log.failed(err)
      return false
    }
  }
}

const notTaken = 'The settings are valid, but not every process could apply them: see the log'
