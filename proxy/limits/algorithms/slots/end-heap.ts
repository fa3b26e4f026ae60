import { NONE } from './key-index.ts'

/**
 * Finds the slot that ends first, for slots whose ends are in no order. It is a binary heap of the last known end of each slot. The end of
 * a slot may become later without an update: it is read again when the slot reaches the top, and the slot sinks to where it belongs. So a
 * client whose slot ends later with each request costs nothing until then. An update takes logarithmic time, and so does each slot that a
 * search reads.
 */
export class EndHeap {
  readonly #endsAtMs: (slot: number) => number
  /** A binary heap: the slot at place `i` ends no earlier than the slot at `(i - 1) >> 1`. */
  readonly #heap: Int32Array
  /** By slot: its place in the heap plus 1, or 0 if it is not in the heap. */
  readonly #places: Int32Array
  /** By slot: its last known end, which is never later than the real one. */
  readonly #knownEnds: Float64Array
  #size = 0

  /** @param capacity number of slots. Memory becomes resident when it is written */
  constructor(capacity: number, endsAtMs: (slot: number) => number) {
    this.#endsAtMs = endsAtMs
    this.#heap = new Int32Array(capacity)
    this.#places = new Int32Array(capacity)
    this.#knownEnds = new Float64Array(capacity)
  }

  /** Adds a slot. Must also be called when a slot may end earlier than before. */
  update(slot: number): void {
    const endsAtMs = this.#endsAtMs(slot)
    const place = (this.#places[slot] ?? 0) - 1
    if (place >= 0 && endsAtMs >= this.#knownEnd(slot)) return
    this.#knownEnds[slot] = endsAtMs
    this.#rise(place >= 0 ? place : this.#size++, slot)
  }

  delete(slot: number): void {
    const place = (this.#places[slot] ?? 0) - 1
    if (place < 0) return
    this.#places[slot] = 0
    const last = this.#heap[--this.#size] ?? NONE
    if (last === slot) return
    this.#rise(place, last)
    this.#sink((this.#places[last] ?? 0) - 1, last)
  }

  /**
   * Returns a slot that has ended, or `NONE` if there is none or it was not found within `maxReads`. Slots that end later than known sink
   * during the search, so that the next search continues from there. Over time, at most one slot sinks for each change that made an end
   * later.
   *
   * @param maxReads the maximum number of slots to read
   */
  findEnded(nowMs: number, maxReads: number): number {
    for (let reads = 0; reads < maxReads && this.#size > 0; reads++) {
      const slot = this.#heap[0] ?? NONE
      if (this.#knownEnd(slot) > nowMs) return NONE
      const endsAtMs = this.#endsAtMs(slot)
      if (endsAtMs <= nowMs) return slot
      this.#knownEnds[slot] = endsAtMs
      this.#sink(0, slot)
    }
    return NONE
  }

  #knownEnd(slot: number): number {
    return this.#knownEnds[slot] ?? 0
  }

  #rise(from: number, slot: number): void {
    let place = from
    while (place > 0) {
      const above = (place - 1) >> 1
      const other = this.#heap[above] ?? NONE
      if (this.#knownEnd(slot) >= this.#knownEnd(other)) break
      this.#put(place, other)
      place = above
    }
    this.#put(place, slot)
  }

  #sink(from: number, slot: number): void {
    let place = from
    for (let below = 2 * place + 1; below < this.#size; below = 2 * place + 1) {
      const right = below + 1
      if (right < this.#size && this.#knownEndAt(right) < this.#knownEndAt(below)) below = right
      if (this.#knownEndAt(below) >= this.#knownEnd(slot)) break
      this.#put(place, this.#heap[below] ?? NONE)
      place = below
    }
    this.#put(place, slot)
  }

  #knownEndAt(place: number): number {
    return this.#knownEnd(this.#heap[place] ?? NONE)
  }

  #put(place: number, slot: number): void {
    this.#heap[place] = slot
    this.#places[slot] = place + 1
  }
}
