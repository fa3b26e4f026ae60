import { settlesByResponse, type Policy } from '../../../policy.ts'
import type { TableUse } from '../../../telemetry/telemetry.ts'
import type { Charge, PolicyState, Reservation } from '../../limiter.ts'
import type { CounterReading, MemoryCounts, MemoryOptions } from '../memory-counts.ts'
import { NONE } from '../slots/key-index.ts'
import { SlotPool, type PendingSlot } from '../slots/slot-pool.ts'

const MAX_COUNT = 0xffff_ffff

/** Determines when windows end. `timeMs` is the clock's own time in milliseconds: monotonic, or the time of day. */
export type WindowClock = {
  /** Whether all windows of a policy end at the same time. If not, the end of each is fixed when it begins. */
  readonly endsForAll: boolean
  readTime(nowMs: number): number
  /** Returns the end of a window that begins now or, with `endsForAll`, of the running window. */
  windowEnd(policy: Policy, timeMs: number): number
  /** Converts an instant to the monotonic clock. */
  toMonotonic(timeMs: number): number
}

/** A window begins with a client's first request. */
export const fromFirstRequest: WindowClock = {
  endsForAll: false,
  readTime: (nowMs) => nowMs,
  windowEnd: ({ windowMs }, nowMs) => nowMs + windowMs,
  toMonotonic: (nowMs) => nowMs,
}

/** The window of each client: its count, and its end on the window clock. */
class Windows {
  readonly #clock: WindowClock
  readonly #counted: Uint32Array
  readonly #ends: Float64Array
  /** By slot: the instant at which its window began. Empty if the end of a window identifies it. */
  readonly #begins: Float64Array
  readonly slots: SlotPool

  constructor(options: MemoryOptions, clock: WindowClock) {
    const { maxKeys } = options
    this.#clock = clock
    this.#counted = new Uint32Array(maxKeys)
    this.#ends = new Float64Array(maxKeys)
    this.#begins = new Float64Array(clock.endsForAll ? maxKeys : 0)
    const endsAtMs = (slot: number): number => this.endsAtMs(slot)
    this.slots = new SlotPool(options, new Uint32Array(maxKeys), { endsAtMs })
  }

  /** Returns the end of the slot's window on the window clock. */
  endOf(slot: number): number {
    return this.#ends[slot] ?? 0
  }

  /**
   * Distinguishes the window from others of the client. If all windows end at the same time, so does one that begins after a reset, and the
   * ticket is the beginning.
   */
  ticketOf(slot: number): number {
    return this.#clock.endsForAll ? (this.#begins[slot] ?? 0) : this.endOf(slot)
  }

  endsAtMs(slot: number): number {
    return this.#clock.toMonotonic(this.endOf(slot))
  }

  countOf(slot: number): number {
    return this.#counted[slot] ?? 0
  }

  /** Returns the slot of a window that has not ended, or `NONE`. Updates the window's end if windows end for all clients at once. */
  find(table: number, { policy, partitionKey }: Charge, timeMs: number): number {
    const slot = this.slots.find(table, partitionKey)
    if (slot === NONE || this.endOf(slot) <= timeMs) return NONE
    // The end has moved if the clock was set back or the policy's calendar was changed since the window began.
    if (this.#clock.endsForAll) this.#ends[slot] = this.#clock.windowEnd(policy, timeMs)
    return slot
  }

  /** Begins a window now, in place of an ended one. */
  begin(table: number, { policy, partitionKey }: Charge, nowMs: number, timeMs: number): number {
    this.slots.forget(table, partitionKey)
    const slot = this.slots.add(table, partitionKey, policy.windowMs, nowMs)
    this.#counted[slot] = 0
    this.#ends[slot] = this.#clock.windowEnd(policy, timeMs)
    if (this.#clock.endsForAll) this.#begins[slot] = nowMs
    this.slots.putLast(table, slot)
    return slot
  }

  add(slot: number, units: number, isLocal: boolean): void {
    this.#counted[slot] = Math.min(this.countOf(slot) + units, MAX_COUNT)
    if (isLocal) this.slots.setPending(slot, Math.min(this.slots.pendingAmount(slot) + units, MAX_COUNT))
  }

  /** Removes one unit from the pending sync. Returns false if none is pending. */
  takeOnePending(slot: number): boolean {
    const pending = this.slots.pendingAmount(slot)
    if (pending > 0) this.slots.setPending(slot, pending - 1)
    return pending > 0
  }

  /** Subtracts units, but from a local count at most those pending sync. Frees the slot when its count reaches 0. */
  takeBack(table: number, slot: number, units: number, isLocal: boolean): void {
    const pending = this.slots.pendingAmount(slot)
    const takenBack = isLocal ? Math.min(units, pending) : units
    if (isLocal) this.slots.setPending(slot, pending - takenBack)
    this.#counted[slot] = Math.max(this.countOf(slot) - takenBack, 0)
    if (this.countOf(slot) === 0) this.slots.remove(table, slot)
  }
}

/** Counts in windows. A ticket is that of the window (`Windows.ticketOf`). */
export class WindowCounts implements MemoryCounts {
  readonly slots: SlotPool
  readonly #windows: Windows
  readonly #clock: WindowClock
  readonly #tableName: string
  readonly #maxKeys: number

  /** @param tableName the name of the table in the metrics */
  constructor(options: MemoryOptions, tableName: string, clock: WindowClock) {
    this.#windows = new Windows(options, clock)
    this.slots = this.#windows.slots
    this.#clock = clock
    this.#tableName = tableName
    this.#maxKeys = options.maxKeys
  }

  exceeds(table: number, charge: Charge, units: number, nowMs: number): boolean {
    const slot = this.#windows.find(table, charge, this.#clock.readTime(nowMs))
    return (slot === NONE ? 0 : this.#windows.countOf(slot)) + units > charge.policy.quota
  }

  charge(table: number, charge: Charge, units: number, nowMs: number, isLocal: boolean): PolicyState {
    const windows = this.#windows
    const { policy } = charge
    const timeMs = this.#clock.readTime(nowMs)
    let slot = windows.find(table, charge, timeMs)
    const used = (slot === NONE ? 0 : windows.countOf(slot)) + units
    if (used > policy.quota) return this.#stateOf(slot, policy, units, timeMs)
    if (slot === NONE) slot = windows.begin(table, charge, nowMs, timeMs)
    windows.add(slot, units, isLocal)
    const resetMs = windows.endOf(slot) - timeMs
    const state = { policy, exceeded: false, remaining: policy.quota - used, resetMs }
    if (!isLocal && !settlesByResponse(policy)) return state
    return { ...state, reservation: { charge, units, isLocal, ticket: windows.ticketOf(slot) } }
  }

  peek(table: number, charge: Charge, units: number, nowMs: number): PolicyState {
    const timeMs = this.#clock.readTime(nowMs)
    return this.#stateOf(this.#windows.find(table, charge, timeMs), charge.policy, units, timeMs)
  }

  /** The state of a request for so many units that is not counted. */
  #stateOf(slot: number, policy: Policy, units: number, timeMs: number): PolicyState {
    const used = slot === NONE ? 0 : this.#windows.countOf(slot)
    const end = slot === NONE ? this.#clock.windowEnd(policy, timeMs) : this.#windows.endOf(slot)
    const remaining = Math.max(0, policy.quota - used)
    return { policy, exceeded: used + units > policy.quota, remaining, resetMs: end - timeMs }
  }

  giveBack(table: number, { charge, isLocal, ticket }: Reservation, units: number, nowMs: number): void {
    const windows = this.#windows
    const timeMs = this.#clock.readTime(nowMs)
    const slot = windows.find(table, charge, timeMs)
    if (units < 0)
      windows.add(slot === NONE ? windows.begin(table, charge, nowMs, timeMs) : slot, -units, isLocal)
    else if (slot !== NONE && windows.ticketOf(slot) === ticket) windows.takeBack(table, slot, units, isLocal)
  }

  read(table: number, charge: Charge, nowMs: number): CounterReading {
    const timeMs = this.#clock.readTime(nowMs)
    const slot = this.#windows.find(table, charge, timeMs)
    if (slot === NONE) return undefined
    return { used: this.#windows.countOf(slot), resetMs: this.#windows.endOf(slot) - timeMs }
  }

  takePending(limit: number, nowMs: number, isAsked?: (shard: number) => boolean): readonly PendingSlot[] {
    const windows = this.#windows
    return this.slots.takePending(
      limit,
      (slot) => {
        const amount = this.slots.pendingAmount(slot)
        this.slots.setPending(slot, 0)
        const isRunning = windows.endOf(slot) > this.#clock.readTime(nowMs)
        return isRunning ? { endsAtMs: windows.endsAtMs(slot), counted: [amount] } : undefined
      },
      isAsked,
    )
  }

  takeBackPending(table: number, charge: Charge, nowMs: number): boolean {
    const slot = this.#windows.find(table, charge, this.#clock.readTime(nowMs))
    return slot !== NONE && this.#windows.takeOnePending(slot)
  }

  readUse(): Readonly<Record<string, TableUse>> {
    const { size, evictions } = this.slots
    return { [this.#tableName]: { size, capacity: this.#maxKeys, evictions } }
  }
}
