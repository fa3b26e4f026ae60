import { NONE } from './key-index.ts'

/** The slots of a table, from the first to the last. */
export type SlotList = {
  readonly table: number
  readonly windowMs: number
  first: number
  last: number
  /** Number of slots. */
  size: number
}

/**
 * The slots of a pool. Slots in use are in a linked list for each table, in the order in which they were put there; the rest are free.
 * A slot is taken, linked, unlinked and given back in constant time and without allocation.
 */
export class SlotLists {
  /** The lists, in the order in which they were added. */
  readonly all: SlotList[] = []
  readonly #capacity: number
  /** The next slot of the same list: of the table, or of free slots. */
  readonly #next: Int32Array
  /** The slot before it in the list of its table. */
  readonly #previous: Int32Array
  #firstFree = NONE
  #untouched = 0
  #size = 0

  /** @param capacity number of slots, at least 1. Memory becomes resident when it is written */
  constructor(capacity: number) {
    this.#capacity = capacity
    this.#next = new Int32Array(capacity)
    this.#previous = new Int32Array(capacity)
  }

  /** Number of slots in use. */
  get size(): number {
    return this.#size
  }

  get isFull(): boolean {
    return this.#size === this.#capacity
  }

  /** Slots from here on have never been used. */
  get untouched(): number {
    return this.#untouched
  }

  add(table: number, windowMs: number): SlotList {
    const list = { table, windowMs, first: NONE, last: NONE, size: 0 }
    this.all.push(list)
    return list
  }

  /** Drops all lists except these. The dropped lists must be empty. */
  keep(used: ReadonlySet<SlotList | undefined>): void {
    const kept = this.all.filter((list) => used.has(list))
    this.all.splice(0, this.all.length, ...kept)
  }

  /** Takes a free slot; there must be one. */
  take(): number {
    this.#size += 1
    if (this.#firstFree === NONE) return this.#untouched++
    const slot = this.#firstFree
    this.#firstFree = this.#next[slot] ?? NONE
    return slot
  }

  /** Removes a slot from its list and frees it. */
  giveBack(list: SlotList, slot: number): void {
    this.unlink(list, slot)
    this.#next[slot] = this.#firstFree
    this.#firstFree = slot
    this.#size -= 1
  }

  /** Visits the slots of a list in order. `visit` may give back the slot that it gets. */
  forEach(list: SlotList, visit: (slot: number) => void): void {
    for (let slot = list.first; slot !== NONE;) {
      const next = this.#next[slot] ?? NONE
      visit(slot)
      slot = next
    }
  }

  linkLast(list: SlotList, slot: number): void {
    this.#previous[slot] = list.last
    this.#next[slot] = NONE
    if (list.last === NONE) list.first = slot
    else this.#next[list.last] = slot
    list.last = slot
    list.size += 1
  }

  unlink(list: SlotList, slot: number): void {
    const previous = this.#previous[slot] ?? NONE
    const next = this.#next[slot] ?? NONE
    if (previous === NONE) list.first = next
    else this.#next[previous] = next
    if (next === NONE) list.last = previous
    else this.#previous[next] = previous
    list.size -= 1
  }
}
