import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../../../shared/log.ts'
import { doInTurns, type Steps } from '../../../shared/steps.ts'
import type { NameChanges, TableChange } from '../../config/reload/table-change.ts'

const MISTAKES_IN_LOG = 20
const NAMES_IN_LOG = 20

/** The log lines of reloads. */
export class ReloadLog {
  readonly #log: Log
  /** The settings that need a restart, as last logged. */
  #loggedRestart: readonly string[] = []

  constructor(log: Log) {
    this.#log = log
  }

  /** Logs that the settings are invalid. Returns the first mistakes. */
  refused(trigger: string, all: readonly string[]): readonly string[] {
    const mistakes = all.slice(0, MISTAKES_IN_LOG)
    this.#log.error({ trigger, mistakes }, 'reload refused; keeping the current limits')
    return mistakes
  }

  failed(err: unknown): void {
    this.#log.error({ err }, 'reload failed; keeping the current limits')
  }

  /** @param isSame whether the table is the one already in effect */
  async reloaded(
    trigger: string,
    change: TableChange,
    isSame: boolean,
    warnings: readonly string[],
  ): Promise<void> {
    const { added, changed: changedRules, removed, routes, restart } = change
    // After a reload on demand, the change of the file has been logged already.
    const isAlreadyLogged = isSame && trigger === 'file'
    if (isAlreadyLogged) this.#log.debug({ trigger, tableHash: change.tableHash }, 'limits unchanged')
    else if (isSame) this.#log.info({ trigger, tableHash: change.tableHash }, 'limits unchanged')
    else {
      const counts = { added: added.length, changed: changedRules.length, removed: removed.length }
      this.#log.info(
        { trigger, tableHash: change.tableHash, rules: rulesIn(change), ...counts },
        'limits reloaded',
      )
      if (Object.values(routes).some(({ length }) => length > 0))
        this.#log.info(firstNames(routes), 'routes changed')
      await doInTurns(this.#warn(warnings))
    }
    if (restart.length > 0 && !(isAlreadyLogged && isDeepStrictEqual(restart, this.#loggedRestart)))
      this.#log.warn({ settings: restart }, 'changed settings need a restart')
    this.#loggedRestart = restart
  }

  /** Logs the warnings in steps, because each of ten thousand rules may have one. */
  *#warn(warnings: readonly string[]): Steps<void> {
    for (const warning of warnings) {
      this.#log.warn(warning)
      yield
    }
  }
}

/** Returns the first names of each list, and the length of the list if it has more names. */
function firstNames(changes: NameChanges): Readonly<Record<string, readonly string[] | number>> {
  return Object.fromEntries(
    Object.entries(changes).flatMap(([what, names]: [string, readonly string[]]) => [
      [what, names.slice(0, NAMES_IN_LOG)],
      ...(names.length > NAMES_IN_LOG ? [[`${what}Total`, names.length]] : []),
    ]),
  ) as Record<string, readonly string[] | number>
}

/** The number of current rules. */
export function rulesIn({ settings }: TableChange): number {
  return settings.rateLimitingDisabled ? 0 : settings.rules.length
}
