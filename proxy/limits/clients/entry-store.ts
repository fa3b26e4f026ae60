import { idOf, MAX_RULE_BANS, type ClientEntry, type EntryId } from './client-entry.ts'
import type { ClientEntries } from './client-entries.ts'

/**
 * - `done`: every process of this gateway, and each replica within a second, knows.
 * - `absent`: there was nothing to remove.
 * - `full`: there are `MAX_ENTRIES` of the kind already, by operators.
 * - `unavailable`: the store does not answer. Nothing was changed.
 * - `uncertain`: the store was asked and has not confirmed. To be repeated; it can be.
 */
export type EntryOutcome = 'done' | 'absent' | 'full' | 'unavailable' | 'uncertain'

/** The storage of bans and overrides for all processes that have to know them. Its methods never reject. */
export type EntryStore = {
  /** Adds or replaces an entry. */
  put(entry: ClientEntry, forMs: number): Promise<EntryOutcome>
  /**
   * Adds an entry, or extends it; one that lasts longer already stays. If there are too many bans by rules, the ones that end soonest are
   * evicted. A ban takes effect in this process at once, and is written to the store when that answers.
   */
  extend(entry: ClientEntry, forMs: number): Promise<EntryOutcome>
  remove(id: EntryId): Promise<EntryOutcome>
  /** Resolves when the stored entries have been read, or after a short wait. */
  ready(): Promise<void>
  close(): void
}

/**
 * Entries of this process, which end with it.
 *
 * @param changed called with each change, for the processes that have copies: `leftMs` is 0 where the entry is gone
 */
export function createMemoryEntryStore(
  entries: ClientEntries,
  changed: (id: EntryId, entry: ClientEntry | undefined, leftMs: number) => void = () => undefined,
): EntryStore {
  function put(entry: ClientEntry, forMs: number, max?: number): Promise<EntryOutcome> {
    if (!entries.set(entry, forMs, max)) return Promise.resolve('full')
    changed(idOf(entry), entry, forMs)
    return Promise.resolve('done')
  }
  return {
    put: (entry, forMs) => put(entry, forMs),
    extend(entry, forMs) {
      if (entries.leftMs(idOf(entry)) >= forMs) return Promise.resolve('done')
      if (entry.kind === 'ban') for (const id of entries.makeRoomFor(entry)) changed(id, undefined, 0)
      return put(entry, forMs, MAX_RULE_BANS)
    },
    remove(id) {
      if (!entries.delete(id)) return Promise.resolve('absent')
      changed(id, undefined, 0)
      return Promise.resolve('done')
    },
    ready: () => Promise.resolve(),
    close: () => undefined,
  }
}
