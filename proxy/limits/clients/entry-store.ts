import { idOf, MAX_RULE_BANS, type ClientEntry, type EntryId } from './client-entry.ts'
import type { ClientEntries } from './client-entries.ts'

/**
 * - `done`: every process of this gateway knows the change; every replica will within a second.
 * - `absent`: there was nothing to remove.
 * - `full`: operators have already made `MAX_ENTRIES` entries of the kind.
 * - `unavailable`: the store does not answer. Nothing was changed.
 * - `uncertain`: the store was asked but did not confirm. It is safe to repeat the change.
 */
export type EntryOutcome = 'done' | 'absent' | 'full' | 'unavailable' | 'uncertain'

/** Stores bans and overrides for all processes that apply them. No method rejects. */
export type EntryStore = {
  /** Adds or replaces an entry. */
  put(entry: ClientEntry, forMs: number): Promise<EntryOutcome>
  /**
   * Adds an entry, or extends it; an existing entry that ends later is kept. If there are too many bans by rules, the ones that end soonest
   * are evicted. A ban takes effect in this process at once, and is written to the store as soon as it answers.
   */
  extend(entry: ClientEntry, forMs: number): Promise<EntryOutcome>
  remove(id: EntryId): Promise<EntryOutcome>
  /** Resolves when the stored entries have been read, or after a short wait. */
  ready(): Promise<void>
  close(): void
}

/** Called with each change of a store; `leftMs` is 0 if the entry was removed. */
export type OnEntryChange = (id: EntryId, entry: ClientEntry | undefined, leftMs: number) => void

/**
 * Creates a store in this process's memory, which is lost when the process ends.
 *
 * @param changed to update copies in other processes
 */
export function createMemoryEntryStore(
  entries: ClientEntries,
  changed: OnEntryChange = () => undefined,
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
