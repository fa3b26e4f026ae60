import { NONE } from './key-index.ts'

/** Slots of one window length, from the first to the last. */
export type SlotList = { readonly windowMs: number; first: number; last: number }

/**
 * The slots of a pool: those in use in a linked list for each window length, in the order in which they were put there, and
 * those that are free. A slot is taken, linked, unlinked and given back in constant time, and nothing is allocated for it.
 */
export class SlotLists {
  /** A list for each window length, in the order in which they were first asked for. */
  readonly all: SlotList[] = []
  readonly #byWindow = new Map<number, SlotList>()
  readonly #capacity: number
  /** The next slot of the same list: of the window length, or of free slots. */
  readonly #next: Int32Array
  /** The slot before it in the list of its window length. */
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

  listFor(windowMs: number): SlotList {
    let list = this.#byWindow.get(windowMs)
    if (!list) {
      list = { windowMs, first: NONE, last: NONE }
      this.#byWindow.set(windowMs, list)
      this.all.push(list)
    }
    return list
  }

  /** Drops lists that are empty, but these: otherwise there would be one for each window length that there has ever been. */
  prune(used: ReadonlySet<SlotList | undefined>): void {
    for (const [windowMs, list] of this.#byWindow)
      if (list.first === NONE && !used.has(list)) this.#byWindow.delete(windowMs)
    this.all.splice(0, this.all.length, ...this.#byWindow.values())
  }

  /** Takes a free slot; there must be one. */
  take(): number {
    this.#size += 1
    if (this.#firstFree === NONE) return this.#untouched++
    const slot = this.#firstFree
    this.#firstFree = this.#next[slot] ?? NONE
    return slot
  }

  /** Takes a slot out of its list, and makes it free. */
  giveBack(list: SlotList, slot: number): void {
    this.unlink(list, slot)
    this.#next[slot] = this.#firstFree
    this.#firstFree = slot
    this.#size -= 1
  }

  /** Visits the slots of a list, in order. Each may be given back by its visit. */
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
  }

  unlink(list: SlotList, slot: number): void {
    const previous = this.#previous[slot] ?? NONE
    const next = this.#next[slot] ?? NONE
    if (previous === NONE) list.first = next
    else this.#next[previous] = next
    if (next === NONE) list.last = previous
    else this.#previous[next] = previous
  }
}
