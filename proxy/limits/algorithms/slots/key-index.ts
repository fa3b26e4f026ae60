/**
 * A hash table from keys to slots in typed arrays of fixed size, for tables that clients can fill. Each key is stored in its
 * slot's cell, so a million addresses need no objects, create no garbage and never cause a pause for growth. In a `Map`, the
 * same keys took two to three times the memory, and single insertions half a second; see docs/decisions/counting.md.
 *
 * The caller decides which slots are in use. The same key under another `owner` is another key. A key that does not fit into
 * its cell is stored as a string.
 */
export class KeyIndex {
  readonly #seed: number
  readonly #mask: number
  /** By hash: the first slot of the chain, plus 1. All arrays are used from index 0 up, and the value 0 means none: see SlotPool. */
  readonly #buckets: Int32Array
  /** By slot: the next slot of the chain, plus 1. */
  readonly #chain: Int32Array
  readonly #hashes: Int32Array
  /** By slot: the owner plus 1, or 0 while the slot is not in the index. */
  readonly #owners: Int32Array
  readonly #cells: Buffer
  readonly #longKeys = new Map<number, string>()

  /**
   * @param capacity the number of slots
   * @param seed any integer that clients cannot know; otherwise, they could choose keys that all fall into one chain
   */
  constructor(capacity: number, seed: number) {
    const bucketCount = 2 ** Math.ceil(Math.log2(Math.max(capacity, 2)))
    this.#seed = seed | 0
    this.#mask = bucketCount - 1
    this.#buckets = new Int32Array(bucketCount)
    this.#chain = new Int32Array(capacity)
    this.#hashes = new Int32Array(capacity)
    this.#owners = new Int32Array(capacity)
    this.#cells = Buffer.alloc(capacity * CELL_BYTES)
  }

  /** The slot of the key, or `NONE`. */
  find(owner: number, key: string): number {
    const hash = this.#hash(owner, key)
    let slot = (this.#buckets[hash & this.#mask] ?? 0) - 1
    while (slot !== NONE) {
      if (this.#hashes[slot] === hash && this.#owners[slot] === owner + 1 && this.#isKeyOf(slot, key))
        return slot
      slot = (this.#chain[slot] ?? 0) - 1
    }
    return NONE
  }

  /** Stores the key in a free slot. The key must not be in the index. */
  insert(slot: number, owner: number, key: string): void {
    const hash = this.#hash(owner, key)
    const bucket = hash & this.#mask
    this.#hashes[slot] = hash
    this.#owners[slot] = owner + 1
    this.#chain[slot] = this.#buckets[bucket] ?? 0
    this.#buckets[bucket] = slot + 1
    this.#writeKey(slot, key)
  }

  /** Removes the slot's key, if it is in the index. */
  remove(slot: number): void {
    if (!this.has(slot)) return
    this.#owners[slot] = 0
    const bucket = (this.#hashes[slot] ?? 0) & this.#mask
    const next = this.#chain[slot] ?? 0
    let at = (this.#buckets[bucket] ?? 0) - 1
    if (at === slot) {
      this.#buckets[bucket] = next
    } else {
      while (this.#chain[at] !== slot + 1) at = (this.#chain[at] ?? 0) - 1
      this.#chain[at] = next
    }
    this.#longKeys.delete(slot)
  }

  has(slot: number): boolean {
    return this.#owners[slot] !== 0
  }

  ownerOf(slot: number): number {
    return (this.#owners[slot] ?? 0) - 1
  }

  keyOf(slot: number): string {
    const start = slot * CELL_BYTES
    const length = this.#cells[start] ?? 0
    if (length === LONG_KEY) return this.#longKeys.get(slot) ?? ''
    return this.#cells.toString('latin1', start + 1, start + 1 + length)
  }

  #writeKey(slot: number, key: string): void {
    const start = slot * CELL_BYTES
    if (key.length < CELL_BYTES && isLatin1(key)) {
      this.#cells[start] = key.length
      this.#cells.write(key, start + 1, 'latin1')
    } else {
      this.#cells[start] = LONG_KEY
      this.#longKeys.set(slot, copyString(key))
    }
  }

  #isKeyOf(slot: number, key: string): boolean {
    const start = slot * CELL_BYTES
    const length = this.#cells[start]
    if (length === LONG_KEY) return this.#longKeys.get(slot) === key
    if (length !== key.length) return false
    for (let i = 0; i < length; i++) {
      if (this.#cells[start + 1 + i] !== key.charCodeAt(i)) return false
    }
    return true
  }

  /** MurmurHash3's mixing, a character at a time. */
  #hash(owner: number, key: string): number {
    let hash = this.#seed ^ Math.imul(owner, 0x9e37_79b1)
    for (let i = 0; i < key.length; i++) {
      hash = Math.imul(hash ^ key.charCodeAt(i), 0xcc9e_2d51)
      hash = (hash << 15) | (hash >>> 17)
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b)
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35)
    return hash ^ (hash >>> 16)
  }
}

/** No slot. */
export const NONE = -1

/** The size of a cell: one byte for the length, the rest for a typical partition key (an address, a /64, or a hash of header values). */
const CELL_BYTES = 32
const LONG_KEY = 255

function isLatin1(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 255) return false
  return true
}

/** Copies a string, because a slice of a longer string keeps all of the longer one in memory. */
function copyString(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le')
}
