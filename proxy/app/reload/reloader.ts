import { setImmediate } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../../../shared/log.ts'
import { reasonOf } from '../../../shared/settings/problems.ts'
import { SettingsError } from '../../../shared/settings/settings.ts'
import { doInTurns, type Steps } from '../../../shared/steps.ts'
import type { ReloadOutcome } from '../../admin/api/api-reload.ts'
import {
  compareTables,
  hashTable,
  type NameChanges,
  type TableChange,
} from '../../config/reload/table-change.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { Notify } from '../../telemetry/webhooks/webhook-event.ts'
import type { ConfigState } from '../../telemetry/metrics/metrics.ts'

/** Reloaded settings, or every problem that prevented the reload. */
export type ReadSettings =
  | { readonly settings: GatewaySettings; readonly warnings: readonly string[] }
  | { readonly mistakes: readonly string[] }

/** The source of the settings. */
export type SettingsSource = {
  /** As they were at the start, before they were fitted to this machine. */
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
  /** Another text whenever the settings file has changed. */
  signature(): string
}

/** A table of limits that is not in force yet. Neither rejects. */
export type PreparedTable = {
  commit(): void | Promise<void>
  abort(): void
}

export type Reloader = {
  /** Reads the settings again and puts their table of limits in force, or leaves all as it is. One at a time; never rejects. */
  reload(trigger: 'signal' | 'file' | 'api'): Promise<ReloadOutcome>
  /** The settings in force. */
  current(): GatewaySettings
  readConfig(): ConfigState
}

/**
 * @param options.running the settings of the start
 * @param options.prepare prepares a new table in every process; rejects if one cannot
 * @param options.changed called when a new table is in force
 * @param options.notify called for each failed reload
 */
export function createReloader(options: {
  readonly running: GatewaySettings
  readonly source: SettingsSource
  readonly prepare: (change: TableChange) => Promise<PreparedTable>
  readonly changed: () => void
  readonly notify?: Notify | undefined
  readonly log: Log
}): Reloader {
  const { source, prepare, changed, notify, log } = options
  let running = options.running
  let state: ConfigState = { hash: hashTable(running), isLastRight: true, lastRightAtMs: Date.now() }
  let toldRestart: readonly string[] = []
  let last: Promise<unknown> = Promise.resolve()

  async function reload(trigger: string): Promise<ReloadOutcome> {
    const signature = source.signature()
    const read = await readSettings()
    // Somebody writes it just now, and half of it may be right: when it has come to rest this is called again.
    if (trigger === 'file' && source.signature() !== signature) return { outcome: 'failed' }
    if ('mistakes' in read) return refuse(trigger, read.mistakes)
    const change = await doInTurns(compareTables(running, source.written, read.settings))
    const hash = change.tableHash
    const isSame = hash === state.hash && change.settings.limitsFile === running.limitsFile
    const applied = isSame || (await apply(change))
    if (applied instanceof SettingsError) return refuse(trigger, applied.problems)
    if (!applied) {
      state = { ...state, isLastRight: false, mistakes: [notTaken] }
      notify?.({ type: 'reload-failed', trigger, mistakes: [] })
      return { outcome: 'failed' }
    }
    state = { hash, isLastRight: true, lastRightAtMs: Date.now() }
    await setImmediate()
    if (!isSame) changed()
    await tell(trigger, change, isSame, read.warnings)
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

  function refuse(trigger: string, all: readonly string[]): ReloadOutcome {
    state = { ...state, isLastRight: false, mistakes: all }
    const mistakes = all.slice(0, MISTAKES_IN_LOG)
    log.error({ trigger, mistakes }, 'reload refused; keeping the limits in force')
    notify?.({ type: 'reload-failed', trigger, mistakes })
    return { outcome: 'refused', mistakes: all }
  }

  async function readSettings(): Promise<ReadSettings> {
    try {
      const read = await source.load()
      if ('mistakes' in read) return read
      // The built-in table in place of somebody's own is what nobody means by taking the file away.
      if (running.configFile === undefined || read.settings.configFile !== undefined) return read
      return { mistakes: [`${running.configFile}: missing, but the gateway read it at startup`] }
    } catch (error) {
      return { mistakes: [reasonOf(error)] }
    }
  }

  /** A mistake in a list of addresses is found only when the processes read it. */
  async function apply(change: TableChange): Promise<boolean | SettingsError> {
    try {
      const prepared = await prepare(change)
      running = change.settings
      await prepared.commit()
      return true
    } catch (err) {
      if (err instanceof SettingsError) return err
      log.error({ err }, 'reload failed; keeping the limits in force')
      return false
    }
  }

  async function tell(
    trigger: string,
    change: TableChange,
    isSame: boolean,
    warnings: readonly string[],
  ): Promise<void> {
    const { added, changed: changedRules, removed, routes, restart } = change
    // After a reload on demand the change of the file is nothing new.
    const isAlreadyLogged = isSame && trigger === 'file'
    if (isAlreadyLogged) log.debug({ trigger, tableHash: state.hash }, 'limits unchanged')
    else if (isSame) log.info({ trigger, tableHash: state.hash }, 'limits unchanged')
    else {
      const counts = { added: added.length, changed: changedRules.length, removed: removed.length }
      log.info({ trigger, tableHash: state.hash, rules: rulesIn(change), ...counts }, 'limits reloaded')
      if (Object.values(routes).some(({ length }) => length > 0))
        log.info(firstNames(routes), 'routes changed')
      await doInTurns(warn(warnings))
    }
    if (restart.length > 0 && !(isAlreadyLogged && isDeepStrictEqual(restart, toldRestart)))
      log.warn({ settings: restart }, 'changed settings need a restart')
    toldRestart = restart
  }

  /** Of ten thousand rules each may have one. */
  function* warn(warnings: readonly string[]): Steps<void> {
    for (const warning of warnings) {
      log.warn(warning)
      yield
    }
  }

  return {
    reload(trigger) {
      const result = last.then(() => reload(trigger))
      last = result
      return result
    },
    current: () => running,
    readConfig: () => state,
  }
}

const notTaken = 'The settings are valid, but not every process could apply them: see the log'
const MISTAKES_IN_LOG = 20
const NAMES_IN_LOG = 20

/** Of each list the first names, and how many there are where these are not all. */
function firstNames(changes: NameChanges): Readonly<Record<string, readonly string[] | number>> {
  return Object.fromEntries(
    Object.entries(changes).flatMap(([what, names]: [string, readonly string[]]) => [
      [what, names.slice(0, NAMES_IN_LOG)],
      ...(names.length > NAMES_IN_LOG ? [[`${what}Total`, names.length]] : []),
    ]),
  ) as Record<string, readonly string[] | number>
}

function rulesIn({ settings }: TableChange): number {
  return settings.rateLimitingDisabled ? 0 : settings.rules.length
}
