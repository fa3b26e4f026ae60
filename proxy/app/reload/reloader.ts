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
  /** The settings at the start, before they were fitted to this machine. */
  readonly written: GatewaySettings
  /** Reads the settings again. Rejects if the read itself fails, whether or not the settings are valid. */
  load(): Promise<ReadSettings>
  /**
   * Watches the settings file, whether or not it exists.
   *
   * @param changed called when the content of the file differs from the start, and whenever it changes again
   * @returns a function that stops watching
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

export type ReloaderOptions = {
  /** The settings at the start. */
  readonly running: GatewaySettings
  readonly source: SettingsSource
  /** Prepares a new table in every process. Rejects if a process cannot. */
  readonly prepare: (change: TableChange) => Promise<PreparedTable>
  /** Called when a new table takes effect. */
  readonly changed: () => void
  /** Called for each failed reload. */
  readonly notify?: Notify | undefined
  readonly log: Log
}

/** Reloads the settings of a gateway, in the process that reads them. */
export class Reloader {
  readonly #options: ReloaderOptions
  #running: GatewaySettings
  #state: ConfigState
  readonly #log: ReloadLog
  #last: Promise<unknown> = Promise.resolve()

  constructor(options: ReloaderOptions) {
    this.#options = options
    this.#log = new ReloadLog(options.log)
    this.#running = options.running
    this.#state = { hash: hashTable(options.running), lastReadSucceeded: true, lastSuccessAtMs: Date.now() }
  }

  /** Reads the settings again and applies their table of limits, or changes nothing. Reloads run one at a time. Never rejects. */
  reload(trigger: 'signal' | 'file' | 'api'): Promise<ReloadOutcome> {
    const result = this.#last.then(() => this.#reload(trigger))
    this.#last = result
    return result
  }

  /** The current settings. */
  current(): GatewaySettings {
    return this.#running
  }

  readConfig(): ConfigState {
    return this.#state
  }

  async #reload(trigger: string): Promise<ReloadOutcome> {
    const signature = this.#options.source.signature()
    const read = await this.#readSettings()
    // The file is being written, and a part of it may be valid by itself. The watcher calls this again when the file has stopped changing.
    if (trigger === 'file' && this.#options.source.signature() !== signature) return { outcome: 'failed' }
    if ('mistakes' in read) return this.#refuse(trigger, read.mistakes)
    const change = await doInTurns(compareTables(this.#running, this.#options.source.written, read.settings))
    const hash = change.tableHash
    const isSame = hash === this.#state.hash && change.settings.limitsFile === this.#running.limitsFile
    const applied = isSame || (await this.#apply(change))
    if (applied instanceof SettingsError) return this.#refuse(trigger, applied.problems)
    if (!applied) {
      this.#state = { ...this.#state, lastReadSucceeded: false, mistakes: [notTaken] }
      this.#options.notify?.({ type: 'reload-failed', trigger, mistakes: [] })
      return { outcome: 'failed' }
    }
    this.#state = { hash, lastReadSucceeded: true, lastSuccessAtMs: Date.now() }
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
    this.#state = { ...this.#state, lastReadSucceeded: false, mistakes: all }
    const mistakes = this.#log.refused(trigger, all)
    this.#options.notify?.({ type: 'reload-failed', trigger, mistakes })
    return { outcome: 'refused', mistakes: all }
  }

  async #readSettings(): Promise<ReadSettings> {
    try {
      const read = await this.#options.source.load()
      if ('mistakes' in read) return read
      // Removing the file must not replace its limits with the built-in table.
      if (this.#running.configFile === undefined || read.settings.configFile !== undefined) return read
      return { mistakes: [`${this.#running.configFile}: missing, but the gateway read it at startup`] }
    } catch (error) {
      return { mistakes: [reasonOf(error)] }
    }
  }

  /**
   * Returns a SettingsError if a process finds a mistake in a list of addresses, which is read only at this point; false after any other
   * failure.
   */
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
