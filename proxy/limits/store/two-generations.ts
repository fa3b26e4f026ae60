import type { TableUse } from '../../telemetry/telemetry.ts'

type Generation<Owner, Entry> = { readonly tables: Map<Owner, Map<string, Entry>>; size: number }

/**
 * A map of bounded size whose entries expire, such as the known state of clients under each policy.
 *
 * Two generations bound its size: entries are added to the younger one; when it holds half of the bound, it becomes the
 * older one, and the previous older one is dropped. That costs nothing per entry, whereas an LRU list would have to be
 * reordered with each use.
 */
export class TwoGenerations<Owner, Entry extends { readonly endsAtMs: number }> {
  readonly #maxEntries: number
  #younger: Generation<Owner, Entry> = { tables: new Map(), size: 0 }
  #older: Generation<Owner, Entry> = { tables: new Map(), size: 0 }
  #evictions = 0

  /** @param maxEntries at least 2 */
  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries
  }

  get size(): number {
    return this.#younger.size + this.#older.size
  }

  find(owner: Owner, key: string): Entry | undefined {
    return this.findYounger(owner, key) ?? this.#older.tables.get(owner)?.get(key)
  }

  findYounger(owner: Owner, key: string): Entry | undefined {
    return this.#younger.tables.get(owner)?.get(key)
  }

  /** Begins a new generation if the younger one is full. Entries dropped before they have ended count as evictions. */
  makeRoom(nowMs: number): void {
    if (this.#younger.size < this.#maxEntries / 2) return
    for (const entries of this.#older.tables.values())
      for (const { endsAtMs } of entries.values()) if (endsAtMs > nowMs) this.#evictions += 1
    this.#older = this.#younger
    this.#younger = { tables: new Map(), size: 0 }
  }

  /** Adds to the younger generation, or replaces its entry under this key. Call it after `makeRoom`. */
  set(owner: Owner, key: string, entry: Entry): void {
    let entries = this.#younger.tables.get(owner)
    if (!entries) this.#younger.tables.set(owner, (entries = new Map<string, Entry>()))
    if (!entries.has(key)) this.#younger.size += 1
    entries.set(key, entry)
  }

  /** Removes an entry from the older generation and returns it. */
  takeOlder(owner: Owner, key: string): Entry | undefined {
    const entries = this.#older.tables.get(owner)
    const entry = entries?.get(key)
    if (entries?.delete(key)) this.#older.size -= 1
    return entry
  }

  delete(owner: Owner, key: string): void {
    for (const generation of [this.#younger, this.#older])
      if (generation.tables.get(owner)?.delete(key)) generation.size -= 1
  }

  /** Deletes a key under all owners that match. */
  deleteKey(matches: (owner: Owner) => boolean, key: string): void {
    for (const generation of [this.#younger, this.#older])
      for (const [owner, entries] of generation.tables)
        if (matches(owner) && entries.delete(key)) generation.size -= 1
  }

  /** Deletes all entries of the owners that match. */
  deleteOwners(matches: (owner: Owner) => boolean): void {
    for (const generation of [this.#younger, this.#older]) {
      for (const [owner, entries] of generation.tables) {
        if (matches(owner) && generation.tables.delete(owner)) generation.size -= entries.size
      }
    }
  }

  clear(): void {
    this.#younger = { tables: new Map(), size: 0 }
    this.#older = { tables: new Map(), size: 0 }
  }

  /** Returns the entries of each owner, the younger generation first. An owner may appear twice. */
  tables(): (readonly [Owner, ReadonlyMap<string, Entry>])[] {
    return [...this.#younger.tables, ...this.#older.tables]
  }

  readUse(): TableUse {
    return { size: this.size, capacity: this.#maxEntries, evictions: this.#evictions }
  }
}
