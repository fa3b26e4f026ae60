import { KeyIndex, NONE } from './key-index.ts'
import { dropTables, SlotLists, type SlotList } from './slot-lists.ts'
import { TimestampQueues } from './timestamp-queues.ts'

/**
 * A pool for sliding windows: for each client the times of its requests that were admitted in the last window. The numbers
 * of clients and of times are bounded. Several tables share it.
 *
 * A client's state has ended when the last of its times has left the window. Clients of one window length end in the
 * order of their latest admitted requests, so a linked list for each length, with such a client moved to the end, is sorted
 * by construction, as in `CounterPool`. When it is full, the client that ends first is evicted.
 *
 * A time is in the window for exactly `windowMs`, the end excluded. The caller passes times, in milliseconds of one
 * monotonic clock.
 */
export class SlidingPool {
  readonly #index: KeyIndex
  readonly #slots: SlotLists
  readonly #times: TimestampQueues
  /** By slot: how many of its newest times `takeUnsaved` has not handed out. */
  readonly #unsaved: Uint32Array
  readonly #listOfTable: (SlotList | undefined)[] = []
  #turn = 0
  #evictions = 0
  #unsavedSlots = 0
  #unsavedCursor = 0

  /**
   * @param capacity maximum number of clients, at least 1. Memory becomes resident when it is written
   * @param timeCapacity maximum number of times; must exceed that of one client, or its own oldest are dropped
   * @param seed any integer that clients cannot know
   */
  constructor(capacity: number, timeCapacity: number, seed: number) {
    this.#index = new KeyIndex(capacity, seed)
    this.#times = new TimestampQueues(capacity, timeCapacity)
    this.#unsaved = new Uint32Array(capacity)
    this.#slots = new SlotLists(capacity)
  }

  /** Number of clients, including ended ones that are not reclaimed yet. */
  get size(): number {
    return this.#slots.size
  }

  /** Room taken by times. */
  get timeSize(): number {
    return this.#times.size
  }

  get timeCapacity(): number {
    return this.#times.capacity
  }

  /** Number of clients evicted before they ended, for lack of room for clients or times, since the start. */
  get evictions(): number {
    return this.#evictions
  }

  /** Clients with times that `takeUnsaved` has not handed out. */
  get unsavedSize(): number {
    return this.#unsavedSlots
  }

  /** The client's slot, with only those times that are in the window, perhaps none; or `NONE`. */
  find(table: number, key: string, windowMs: number, nowMs: number): number {
    const slot = this.#index.find(table, key)
    if (slot !== NONE) this.#dropLeft(slot, windowMs, nowMs)
    return slot
  }

  /** How many times the slot holds. */
  count(slot: number): number {
    return this.#times.count(slot)
  }

  /** When the oldest of the slot's times leaves the window; it holds one at least. */
  leavesAtMs(slot: number, windowMs: number): number {
    return this.#times.first(slot) + windowMs
  }

  /** Notes an admission, later than all others of this client. A table has one window length. Returns the slot. */
  admit(table: number, key: string, windowMs: number, nowMs: number): number {
    const list = (this.#listOfTable[table] ??= this.#slots.listFor(windowMs))
    this.#reclaim(list, nowMs)
    let slot = this.#index.find(table, key)
    if (slot === NONE) {
      slot = this.#takeSlot(nowMs)
      this.#index.insert(slot, table, key)
    } else {
      this.#slots.unlink(list, slot)
    }
    while (this.#times.lacksRoomFor(slot)) if (!this.#evictFirst(nowMs)) this.#dropOldest(slot)
    this.#times.push(slot, nowMs)
    this.#slots.linkLast(list, slot)
    return slot
  }

  /**
   * Takes out one admission at this time, if the slot holds one.
   *
   * @param unsaved only where it has not been handed out by `takeUnsaved`
   */
  remove(table: number, slot: number, time: number, unsaved: boolean): void {
    const count = this.#times.count(slot)
    const place = this.#times.placeOf(slot, time)
    const list = this.#listOfTable[table]
    const unsavedCount = this.#unsaved[slot] ?? 0
    const isUnsaved = place >= count - unsavedCount
    if (place === -1 || !list || (unsaved && !isUnsaved)) return
    if (count === 1) {
      this.#removeSlot(list, slot)
      return
    }
    this.#times.removeAt(slot, place)
    if (isUnsaved) this.#setUnsaved(slot, unsavedCount - 1)
  }

  /** Forgets a client. Returns whether there was one. */
  forget(table: number, key: string): boolean {
    const slot = this.#index.find(table, key)
    const list = this.#listOfTable[table]
    if (slot === NONE || !list) return false
    this.#removeSlot(list, slot)
    return true
  }

  /** Removes all clients of tables but those with times that are to be handed out. Returns the tables of which some are left. */
  dropTables(tables: ReadonlySet<number>): ReadonlySet<number> {
    this.#turn = 0
    return dropTables(
      {
        slots: this.#slots,
        listOfTable: this.#listOfTable,
        tableOf: (slot) => this.#index.ownerOf(slot),
        isUnsaved: (slot) => this.#unsaved[slot] !== 0,
        remove: (list, slot) => this.#removeSlot(list, slot),
      },
      tables,
    )
  }

  /** Reclaims up to two clients that have ended. Called with every decision, so that ended ones do not accumulate. */
  reclaimInPassing(nowMs: number): void {
    const list = this.#slots.all[this.#turn]
    if (!list || this.#reclaim(list, nowMs) === 2) return
    this.#turn = this.#turn + 1 < this.#slots.all.length ? this.#turn + 1 : 0
  }

  /** Notes that the slot's newest time has still to be added to the shared counters, as all of them have or none. */
  markUnsaved(slot: number): void {
    const unsaved = this.#unsaved[slot] ?? 0
    if (unsaved === 0) this.#unsavedSlots += 1
    this.#unsaved[slot] = unsaved + 1
  }

  /** Undoes `markUnsaved` once, of the oldest that has not been handed out. Returns whether there was one. */
  unmarkUnsaved(slot: number): boolean {
    const unsaved = this.#unsaved[slot] ?? 0
    if (unsaved === 0) return false
    this.#setUnsaved(slot, unsaved - 1)
    return true
  }

  /** Hands out, once, at most `limit` unsaved times, oldest first for each client; not those that have left. */
  takeUnsaved(limit: number, nowMs: number): UnsavedTimes[] {
    const taken: UnsavedTimes[] = []
    let room = limit
    while (this.#unsavedSlots > 0 && room > 0) {
      const slot = this.#unsavedCursor
      const times = this.#unsaved[slot] === 0 ? [] : this.#takeUnsavedOf(slot, room, nowMs)
      if (times.length > 0)
        taken.push({ table: this.#index.ownerOf(slot), key: this.#index.keyOf(slot), times })
      room -= times.length
      if (this.#unsaved[slot] === 0) this.#unsavedCursor = slot + 1 < this.#slots.untouched ? slot + 1 : 0
    }
    return taken
  }

  #takeUnsavedOf(slot: number, limit: number, nowMs: number): number[] {
    const list = this.#listOfTable[this.#index.ownerOf(slot)]
    if (list) this.#dropLeft(slot, list.windowMs, nowMs)
    const unsaved = this.#unsaved[slot] ?? 0
    const amount = Math.min(unsaved, limit)
    const from = this.#times.count(slot) - unsaved
    this.#setUnsaved(slot, unsaved - amount)
    return this.#times.slice(slot, from, from + amount)
  }

  #dropLeft(slot: number, windowMs: number, nowMs: number): void {
    while (this.#times.count(slot) > 0 && this.#times.first(slot) + windowMs <= nowMs) this.#dropOldest(slot)
  }

  #dropOldest(slot: number): void {
    this.#times.shift(slot)
    const count = this.#times.count(slot)
    if ((this.#unsaved[slot] ?? 0) > count) this.#setUnsaved(slot, count)
  }

  #setUnsaved(slot: number, unsaved: number): void {
    if (this.#unsaved[slot] !== 0 && unsaved === 0) this.#unsavedSlots -= 1
    this.#unsaved[slot] = unsaved
  }

  #endsAtMs(list: SlotList, slot: number): number {
    return this.#times.count(slot) === 0 ? -Infinity : this.#times.last(slot) + list.windowMs
  }

  /** Returns how many, 2 at most: there may be more. */
  #reclaim(list: SlotList, nowMs: number): number {
    let reclaimed = 0
    while (reclaimed < 2 && list.first !== NONE && this.#endsAtMs(list, list.first) <= nowMs) {
      this.#removeSlot(list, list.first)
      reclaimed += 1
    }
    return reclaimed
  }

  #takeSlot(nowMs: number): number {
    if (this.#slots.isFull) this.#evictFirst(nowMs)
    return this.#slots.take()
  }

  /** Removes the client that ends first of those in the lists. Returns whether there was one. */
  #evictFirst(nowMs: number): boolean {
    let earliest: SlotList | undefined
    let earliestMs = Infinity
    for (const list of this.#slots.all) {
      if (list.first === NONE || this.#endsAtMs(list, list.first) >= earliestMs) continue
      earliest = list
      earliestMs = this.#endsAtMs(list, list.first)
    }
    if (!earliest) return false
    if (earliestMs > nowMs) this.#evictions += 1
    this.#removeSlot(earliest, earliest.first)
    return true
  }

  #removeSlot(list: SlotList, slot: number): void {
    this.#times.clear(slot)
    this.#setUnsaved(slot, 0)
    this.#index.remove(slot)
    this.#slots.giveBack(list, slot)
  }
}

/** Admissions of one client that are not in the shared counters yet. */
export type UnsavedTimes = { readonly table: number; readonly key: string; readonly times: readonly number[] }
