import type { TableUse } from '../../telemetry/telemetry.ts'
import { MAX_ENTRIES, type ClientEntry, type EntryId, type TimedEntry } from './client-entry.ts'

/** Entries that expire, at most `MAX_ENTRIES`. */
export class EntryMap<Entry extends ClientEntry> {
  readonly #onGone: ((id: EntryId, entry: Entry) => void) | undefined
  readonly #entries = new Map<EntryId, { readonly entry: Entry; readonly endsAtMs: number }>()

  /** Kept in a field, because every request reads it. */
  size = 0

  /** @param onGone called with each entry that is removed or replaced */
  constructor(onGone?: (id: EntryId, entry: Entry) => void) {
    this.#onGone = onGone
  }

  /** Whether there are `max` entries that have not expired. */
  isFull(max: number, nowMs: number): boolean {
    if (this.size >= max) this.#prune(nowMs)
    return this.size >= max
  }

  /** Returns the `count` entries of `among` that end soonest. */
  soonest(count: number, among: Iterable<EntryId>): readonly EntryId[] {
    const ends = Array.from(among, (id) => [id, this.#entries.get(id)?.endsAtMs ?? -Infinity] as const)
    return ends
      .sort(([, one], [, other]) => one - other)
      .slice(0, count)
      .map(([id]) => id)
  }

  /**
   * Returns the `count` entries of the largest groups that end soonest. A group that is smaller than another one by more than `count` loses
   * no entry.
   *
   * @param groupOf returns undefined for an entry that must stay
   */
  soonestOfLargest(
    count: number,
    groupOf: (id: EntryId, entry: Entry) => string | undefined,
  ): readonly EntryId[] {
    const groups = new Map<string, EntryId[]>()
    for (const [id, { entry }] of this.#entries) {
      const name = groupOf(id, entry)
      const group = name === undefined ? undefined : groups.get(name)
      if (group) group.push(id)
      else if (name !== undefined) groups.set(name, [id])
    }
    const all = [...groups.values()]
    const left = sizeLeft(
      all.map(({ length }) => length),
      count,
    )
    return this.soonest(
      count,
      all.flatMap((ids) => (ids.length > left ? this.soonest(ids.length - left, ids) : [])),
    )
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

  set(id: EntryId, entry: Entry, endsAtMs: number, nowMs: number, max = MAX_ENTRIES): boolean {
    if (!this.#entries.has(id) && this.isFull(max, nowMs)) return false
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

/** The size to which the largest groups shrink if they lose `count` entries together. */
function sizeLeft(sizes: readonly number[], count: number): number {
  let sum = 0
  for (const [at, size] of sizes.toSorted((one, other) => other - one).entries()) {
    // The groups before this one can lose `count` entries without becoming smaller than this one.
    if (sum - at * size >= count) return Math.floor((sum - count) / at)
    sum += size
  }
  return Math.max(0, Math.floor((sum - count) / sizes.length))
}
