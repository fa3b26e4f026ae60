import { NONE } from '../slots/key-index.ts'
import { LargestTables } from '../slots/largest-tables.ts'
import { SlotPool, type PendingSlot, type SlotOptions } from '../slots/slot-pool.ts'
import { TimestampQueues } from './timestamp-queues.ts'

/**
 * For each client, the times of the requests that were admitted in the last window. The numbers of clients and of times are bounded.
 *
 * A client's slot ends when its latest time leaves the window, so the clients of one table end in the order of their latest admitted
 * requests. When there is no room for another client or another time, the client that ends first is evicted, from the table with the most
 * clients or times.
 *
 * A time is in the window for exactly `windowMs`, the end excluded.
 */
export class AdmissionTimes {
  /** The pending amount of a slot is the number of its newest times that are pending sync. */
  readonly slots: SlotPool
  readonly #times: TimestampQueues
  /** By table: the number of times in its slots. */
  readonly #timesOfTable: number[] = []
  readonly #tablesByTimes = new LargestTables((table) =>
    this.slots.stateOf(table, this.#timesOfTable[table] ?? 0),
  )

  /** @param timeCapacity maximum number of times; must exceed the number for one client, or the client's own oldest times are dropped */
  constructor(options: SlotOptions, timeCapacity: number) {
    const { maxKeys } = options
    const times = new TimestampQueues(maxKeys, timeCapacity)
    this.#times = times
    const content = {
      endsAtMs: (slot: number, windowMs: number) =>
        times.count(slot) === 0 ? -Infinity : times.last(slot) + windowMs,
      clear: (slot: number) => {
        this.#adjustTimes(slot, -times.count(slot))
        times.clear(slot)
      },
    }
    this.slots = new SlotPool(options, new Uint32Array(maxKeys), content)
  }

  /** The room taken by all clients, in times. */
  get timeSize(): number {
    return this.#times.size
  }

  get timeCapacity(): number {
    return this.#times.capacity
  }

  /** Returns the client's slot, or `NONE`. Drops the times that have left the window, perhaps all of them. */
  find(table: number, key: string, windowMs: number, nowMs: number): number {
    const slot = this.slots.find(table, key)
    if (slot !== NONE) this.#dropLeft(slot, windowMs, nowMs)
    return slot
  }

  /** Returns the number of admission times in the slot. */
  count(slot: number): number {
    return this.#times.count(slot)
  }

  /** Returns when the time at a place, 0 for the oldest, leaves the window; the slot must hold it. */
  leavesAtMs(slot: number, windowMs: number, place = 0): number {
    const time = place === 0 ? this.#times.first(slot) : this.#times.slice(slot, place, place + 1)[0]
    return (time ?? 0) + windowMs
  }

  /** Records an admission, which must be the client's latest. All windows of a table have the same length. Returns the slot. */
  admit(table: number, key: string, windowMs: number, nowMs: number): number {
    let slot = this.slots.find(table, key)
    if (slot === NONE) slot = this.slots.add(table, key, windowMs, nowMs)
    else this.slots.takeOut(table, slot)
    if (this.#times.isFullFor(slot)) this.#makeRoom(table, slot, nowMs)
    this.#times.push(slot, nowMs)
    this.#timesOfTable[table] = (this.#timesOfTable[table] ?? 0) + 1
    this.#tablesByTimes.updateRoom(table, this.#timesOfTable[table])
    this.slots.putLast(table, slot)
    return slot
  }

  /**
   * Removes up to `units` admissions at this time, all in one pass: one by one, thousands would take seconds.
   *
   * @param onlyPending whether to remove only admissions that `takePending` has not handed out
   */
  remove(table: number, slot: number, time: number, units: number, onlyPending: boolean): void {
    const count = this.#times.count(slot)
    const pending = this.slots.pendingAmount(slot)
    const firstPending = count - pending
    const places = this.#times.placesOf(slot, time)
    const { to } = places
    const from = Math.max(places.from, to - units, onlyPending ? firstPending : 0)
    if (from >= to) return
    if (to - from === count) {
      this.slots.remove(table, slot)
      return
    }
    this.#times.removeRange(slot, from, to)
    this.#adjustTimes(slot, from - to)
    this.slots.setPending(slot, pending - Math.max(0, to - Math.max(from, firstPending)))
  }

  /** Marks the slot's newest time as not yet added to the shared counters. Either all times of a slot are marked when admitted, or none. */
  markPending(slot: number): void {
    this.slots.setPending(slot, this.slots.pendingAmount(slot) + 1)
  }

  /** Undoes one `markPending`, for the oldest time that has not been handed out. Returns whether there was one. */
  unmarkPending(slot: number): boolean {
    const pending = this.slots.pendingAmount(slot)
    if (pending === 0) return false
    this.slots.setPending(slot, pending - 1)
    return true
  }

  /** Hands out at most `limit` times pending sync, each once and oldest first for each client. Skips times that have left the window. */
  takePending(limit: number, nowMs: number, isAsked?: (shard: number) => boolean): PendingSlot[] {
    const handOut = (slot: number, room: number): Pick<PendingSlot, 'counted' | 'endsAtMs'> | undefined => {
      const windowMs = this.slots.windowMsOf(slot)
      this.#dropLeft(slot, windowMs, nowMs)
      const pending = this.slots.pendingAmount(slot)
      const amount = Math.min(pending, room)
      if (amount === 0) return undefined
      const from = this.#times.count(slot) - pending
      this.slots.setPending(slot, pending - amount)
      const counted = this.#times.slice(slot, from, from + amount)
      return { counted, endsAtMs: (counted.at(-1) ?? -Infinity) + windowMs }
    }
    return this.slots.takePending(limit, handOut, isAsked)
  }

  #dropLeft(slot: number, windowMs: number, nowMs: number): void {
    while (this.#times.count(slot) > 0 && this.#times.first(slot) + windowMs <= nowMs) this.#dropOldest(slot)
  }

  #dropOldest(slot: number): void {
    this.#times.shift(slot)
    this.#adjustTimes(slot, -1)
    const count = this.#times.count(slot)
    if (this.slots.pendingAmount(slot) > count) this.slots.setPending(slot, count)
  }

  /** Makes room for one more time of a slot that is not in a list. */
  #makeRoom(table: number, slot: number, nowMs: number): void {
    while (this.#times.isFullFor(slot))
      if (!this.slots.evictFirst(nowMs, this.#tablesByTimes)) this.#dropOldest(slot)
    this.slots.updateTable(table)
  }

  #adjustTimes(slot: number, change: number): void {
    const table = this.slots.tableOf(slot)
    this.#timesOfTable[table] = (this.#timesOfTable[table] ?? 0) + change
  }
}
