import { KeyIndex, NONE } from './key-index.ts'
import { dropTables, SlotLists, type SlotList } from './slot-lists.ts'

/**
 * A pool of a fixed number of slots for counters of fixed windows, which begin with a client's first request. Several tables
 * share it.
 *
 * Counters of one window length end in the order in which they began, so a linked list for each length is sorted by
 * construction: the counter that ends first is at the head of one of few lists. Ended counters are reclaimed there, a few at
 * each call and without timers, and counters are evicted there when all slots are in use.
 *
 * The caller passes times, in milliseconds of one monotonic clock. Windows of one length must end in the order in which they
 * begin, so sliding windows need another structure.
 */
export class CounterPool {
  readonly #index: KeyIndex
  readonly #slots: SlotLists
  readonly #counts: Uint32Array
  readonly #unsaved: Uint32Array
  readonly #endsAtMs: Float64Array
  readonly #listOfTable: (SlotList | undefined)[] = []
  #turn = 0
  #evictions = 0
  #unsavedSlots = 0
  #unsavedCursor = 0

  /**
   * @param capacity maximum number of counters, at least 1. Their memory is reserved at once, but becomes resident only
   *   when it is written
   * @param seed any integer that clients cannot know
   */
  constructor(capacity: number, seed: number) {
    this.#index = new KeyIndex(capacity, seed)
    this.#counts = new Uint32Array(capacity)
    this.#unsaved = new Uint32Array(capacity)
    this.#endsAtMs = new Float64Array(capacity)
    this.#slots = new SlotLists(capacity)
  }

  /** Number of counters, including ended ones that are not reclaimed yet. */
  get size(): number {
    return this.#slots.size
  }

  /** Number of counters evicted before their window ended, since the start. */
  get evictions(): number {
    return this.#evictions
  }

  /** Number of counters with a count that `takeUnsaved` has not returned yet. */
  get unsavedSize(): number {
    return this.#unsavedSlots
  }

  /** The slot of a counter, or `NONE` if there is none or its window has ended. */
  find(table: number, key: string, nowMs: number): number {
    const slot = this.#index.find(table, key)
    return slot !== NONE && this.endsAtMs(slot) > nowMs ? slot : NONE
  }

  count(slot: number): number {
    return this.#counts[slot] ?? 0
  }

  endsAtMs(slot: number): number {
    return this.#endsAtMs[slot] ?? 0
  }

  add(slot: number, amount: number): void {
    this.#counts[slot] = Math.min(this.count(slot) + amount, LARGEST_COUNT)
  }

  subtract(slot: number, amount: number): void {
    this.#counts[slot] = Math.max(this.count(slot) - amount, 0)
  }

  /** Begins a counter's window now, at a count of 0, in place of any counter with this key. Returns its slot. */
  begin(table: number, key: string, windowMs: number, nowMs: number): number {
    this.forget(table, key)
    const list = (this.#listOfTable[table] ??= this.#slots.listFor(windowMs))
    this.#reclaim(list, nowMs)
    const slot = this.#takeSlot(nowMs)
    this.#index.insert(slot, table, key)
    this.#counts[slot] = 0
    this.#endsAtMs[slot] = nowMs + windowMs
    this.#slots.linkLast(list, slot)
    return slot
  }

  /** Removes a counter. Returns whether there was one. */
  forget(table: number, key: string): boolean {
    const slot = this.#index.find(table, key)
    const list = this.#listOfTable[table]
    if (slot === NONE || !list) return false
    this.#remove(list, slot)
    return true
  }

  /** Removes all counters of tables whose count `takeUnsaved` has returned. Returns the tables of which some are left. */
  dropTables(tables: ReadonlySet<number>): ReadonlySet<number> {
    this.#turn = 0
    return dropTables(
      {
        slots: this.#slots,
        listOfTable: this.#listOfTable,
        tableOf: (slot) => this.#index.ownerOf(slot),
        isUnsaved: (slot) => this.#unsaved[slot] !== 0,
        remove: (list, slot) => this.#remove(list, slot),
      },
      tables,
    )
  }

  /** Reclaims up to two counters that have ended. Called with every decision, so that ended ones do not accumulate. */
  reclaimInPassing(nowMs: number): void {
    const list = this.#slots.all[this.#turn]
    if (!list || this.#reclaim(list, nowMs) === 2) return
    this.#turn = this.#turn + 1 < this.#slots.all.length ? this.#turn + 1 : 0
  }

  /** Records that this part of the slot's count is still to be added to the shared counters. */
  addUnsaved(slot: number, amount: number): void {
    const unsaved = this.#unsaved[slot] ?? 0
    if (unsaved === 0) this.#unsavedSlots += 1
    this.#unsaved[slot] = Math.min(unsaved + amount, LARGEST_COUNT)
  }

  /** Undoes `addUnsaved`, as far as `takeUnsaved` has not returned it. Returns how much was undone. */
  takeBackUnsaved(slot: number, amount: number): number {
    const unsaved = this.#unsaved[slot] ?? 0
    if (amount < unsaved) this.#unsaved[slot] = unsaved - amount
    else this.#dropUnsaved(slot)
    return Math.min(amount, unsaved)
  }

  /** Returns the unsaved counts of at most `limit` counters, each once. Those of ended counters are dropped. */
  takeUnsaved(limit: number, nowMs: number): UnsavedCount[] {
    const taken: UnsavedCount[] = []
    while (this.#unsavedSlots > 0 && taken.length < limit) {
      const slot = this.#unsavedCursor
      this.#unsavedCursor = slot + 1 < this.#slots.untouched ? slot + 1 : 0
      const amount = this.#unsaved[slot] ?? 0
      if (amount === 0) continue
      this.#dropUnsaved(slot)
      const endsAtMs = this.endsAtMs(slot)
      if (endsAtMs <= nowMs) continue
      taken.push({ table: this.#index.ownerOf(slot), key: this.#index.keyOf(slot), amount, endsAtMs })
    }
    return taken
  }

  #dropUnsaved(slot: number): void {
    if (this.#unsaved[slot] === 0) return
    this.#unsaved[slot] = 0
    this.#unsavedSlots -= 1
  }

  /** Returns the number of reclaimed counters, at most 2; there may be more to reclaim. */
  #reclaim(list: SlotList, nowMs: number): number {
    let reclaimed = 0
    while (reclaimed < 2 && list.first !== NONE && this.endsAtMs(list.first) <= nowMs) {
      this.#remove(list, list.first)
      reclaimed += 1
    }
    return reclaimed
  }

  #takeSlot(nowMs: number): number {
    if (this.#slots.isFull) {
      const list = this.#listThatEndsFirst()
      if (this.endsAtMs(list.first) > nowMs) this.#evictions += 1
      this.#remove(list, list.first)
    }
    return this.#slots.take()
  }

  #listThatEndsFirst(): SlotList {
    let earliest: SlotList = { windowMs: 0, first: NONE, last: NONE }
    let earliestMs = Infinity
    for (const list of this.#slots.all) {
      if (list.first === NONE || this.endsAtMs(list.first) >= earliestMs) continue
      earliest = list
      earliestMs = this.endsAtMs(list.first)
    }
    return earliest
  }

  #remove(list: SlotList, slot: number): void {
    this.#dropUnsaved(slot)
    this.#index.remove(slot)
    this.#slots.giveBack(list, slot)
  }
}

const LARGEST_COUNT = 0xffff_ffff

/** Requests that a counter has admitted and that are not in the shared counters yet. */
export type UnsavedCount = {
  readonly table: number
  readonly key: string
  readonly amount: number
  readonly endsAtMs: number
}
