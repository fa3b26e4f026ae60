import type { TableUse } from '../../telemetry/telemetry.ts'
import { MAX_ENTRIES, type ClientEntry, type EntryId, type TimedEntry } from './client-entry.ts'

/** Entries that end by themselves, at most `MAX_ENTRIES`. */
export class EntryMap<Entry extends ClientEntry> {
  readonly #onGone: ((id: EntryId, entry: Entry) => void) | undefined
  readonly #entries = new Map<EntryId, { readonly entry: Entry; readonly endsAtMs: number }>()

  /** Read for each request. */
  size = 0

  /** @param onGone called with each entry that was removed or replaced */
  constructor(onGone?: (id: EntryId, entry: Entry) => void) {
    this.#onGone = onGone
  }

  /** Whether there are `most` entries that have not ended. */
  isFull(most: number, nowMs: number): boolean {
    if (this.size >= most) this.#prune(nowMs)
    return this.size >= most
  }

  /** The entries of a kind that end soonest: of all, or of those in `among`. */
  soonest(
    count: number,
    isOfKind: (entry: Entry) => boolean,
    among: Iterable<EntryId> = this.#entries.keys(),
  ): readonly EntryId[] {
    const found: { readonly id: EntryId; readonly endsAtMs: number }[] = []
    for (const id of among) {
      const kept = this.#entries.get(id)
      if (kept && isOfKind(kept.entry)) found.push({ id, endsAtMs: kept.endsAtMs })
    }
    return found
      .sort((one, other) => one.endsAtMs - other.endsAtMs)
      .slice(0, count)
      .map(({ id }) => id)
  }

  remove(id: EntryId): void {
    const kept = this.#entries.get(id)
    if (!kept) return
    this.#entries.delete(id)
    this.size = this.#entries.size
    this.#onGone?.(id, kept.entry)
  }

  find(id: EntryId, nowMs: number): Entry | undefined {
    const found = this.#entries.get(id)
    if (!found) return undefined
    if (found.endsAtMs > nowMs) return found.entry
    this.remove(id)
    return undefined
  }

  leftMs(id: EntryId, nowMs: number): number {
    return this.find(id, nowMs) ? (this.#entries.get(id)?.endsAtMs ?? 0) - nowMs : 0
  }

  set(id: EntryId, entry: Entry, endsAtMs: number, nowMs: number, most = MAX_ENTRIES): boolean {
    if (!this.#entries.has(id) && this.isFull(most, nowMs)) return false
    this.remove(id)
    this.#entries.set(id, { entry, endsAtMs })
    this.size = this.#entries.size
    return true
  }

  delete(id: EntryId, nowMs: number): boolean {
    const isThere = this.find(id, nowMs) !== undefined
    this.remove(id)
    return isThere
  }

  list(nowMs: number): TimedEntry<Entry>[] {
    this.#prune(nowMs)
    return Array.from(this.#entries, ([id, { entry, endsAtMs }]) => ({ id, entry, leftMs: endsAtMs - nowMs }))
  }

  clear(): void {
    for (const id of this.#entries.keys()) this.remove(id)
  }

  readUse(nowMs: number): TableUse {
    this.#prune(nowMs)
    return { size: this.size, capacity: MAX_ENTRIES, evictions: 0 }
  }

  #prune(nowMs: number): void {
    for (const [id, { endsAtMs }] of this.#entries) if (endsAtMs <= nowMs) this.remove(id)
  }
}
