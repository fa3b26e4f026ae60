import { settlesByResponse, type Policy } from '../../../policy.ts'
import type { TableUse } from '../../../telemetry/telemetry.ts'
import type { Charge, PolicyState, Reservation } from '../../limiter.ts'
import type { ClientSlots, CounterReading, MemoryCounts, MemoryOptions } from '../memory-counts.ts'
import { NONE } from '../slots/key-index.ts'
import type { PendingSlot } from '../slots/slot-pool.ts'
import { AdmissionTimes } from './admission-times.ts'

/** Counts in sliding windows. Each unit is remembered by its time, which is the ticket of its charge. */
export class SlidingCounts implements MemoryCounts {
  readonly slots: ClientSlots & { readonly size: number; readonly evictions: number }
  readonly #times: AdmissionTimes
  readonly #maxKeys: number
  readonly #timeCapacity: number

  constructor(options: MemoryOptions, timeCapacity: number) {
    this.#times = new AdmissionTimes(options, timeCapacity)
    this.slots = this.#times.slots
    this.#maxKeys = options.maxKeys
    this.#timeCapacity = timeCapacity
  }

  exceeds(table: number, charge: Charge, units: number, nowMs: number): boolean {
    return this.#usedIn(this.#find(table, charge, nowMs)) + units > charge.policy.quota
  }

  charge(table: number, charge: Charge, units: number, nowMs: number, isLocal: boolean): PolicyState {
    const times = this.#times
    const { policy, partitionKey } = charge
    let slot = this.#find(table, charge, nowMs)
    if (this.#usedIn(slot) + units > policy.quota) return this.#stateOf(slot, policy, units, nowMs)
    for (let unit = 0; unit < units; unit++) {
      slot = times.admit(table, partitionKey, policy.windowMs, nowMs)
      if (isLocal) times.markPending(slot)
    }
    const remaining = policy.quota - this.#usedIn(slot)
    const resetMs = this.#untilFitsMs(slot, policy, nowMs, 1)
    if (!isLocal && !settlesByResponse(policy)) return { policy, exceeded: false, remaining, resetMs }
    const reservation = { charge, units, isLocal, ticket: nowMs }
    return { policy, exceeded: false, remaining, resetMs, reservation }
  }

  peek(table: number, charge: Charge, units: number, nowMs: number): PolicyState {
    return this.#stateOf(this.#find(table, charge, nowMs), charge.policy, units, nowMs)
  }

  giveBack(table: number, { charge, isLocal, ticket }: Reservation, units: number, nowMs: number): void {
    const slot = this.#find(table, charge, nowMs)
    if (slot !== NONE) this.#times.remove(table, slot, Number(ticket), units, isLocal)
  }

  read(table: number, charge: Charge, nowMs: number): CounterReading {
    const slot = this.#find(table, charge, nowMs)
    const used = this.#usedIn(slot)
    if (used === 0) return undefined
    return { used, resetMs: this.#untilFitsMs(slot, charge.policy, nowMs, 1) }
  }

  takePending(limit: number, nowMs: number, isAsked?: (shard: number) => boolean): PendingSlot[] {
    return this.#times.takePending(limit, nowMs, isAsked)
  }

  takeBackPending(table: number, charge: Charge, nowMs: number): boolean {
    const slot = this.#find(table, charge, nowMs)
    return slot !== NONE && this.#times.unmarkPending(slot)
  }

  readUse(): Readonly<Record<string, TableUse>> {
    const { size, evictions } = this.slots
    return {
      sliding: { size, capacity: this.#maxKeys, evictions },
      'sliding-times': { size: this.#times.timeSize, capacity: this.#timeCapacity, evictions: 0 },
    }
  }

  /** The state of a request for so many units that is not counted. */
  #stateOf(slot: number, policy: Policy, units: number, nowMs: number): PolicyState {
    const used = this.#usedIn(slot)
    const exceeded = used + units > policy.quota
    const resetMs = this.#untilFitsMs(slot, policy, nowMs, exceeded ? units : 1)
    return { policy, exceeded, remaining: Math.max(0, policy.quota - used), resetMs }
  }

  #find(table: number, { policy, partitionKey }: Charge, nowMs: number): number {
    return this.#times.find(table, partitionKey, policy.windowMs, nowMs)
  }

  /**
   * Returns the time until so many units fit, or until the oldest unit leaves if they do now. If more than a lowered quota is used, the
   * excess must leave as well.
   */
  #untilFitsMs(slot: number, { quota, windowMs }: Policy, nowMs: number, units: number): number {
    const used = this.#usedIn(slot)
    if (used === 0 || units > quota) return windowMs
    return this.#times.leavesAtMs(slot, windowMs, Math.max(0, used + units - quota - 1)) - nowMs
  }

  #usedIn(slot: number): number {
    return slot === NONE ? 0 : this.#times.count(slot)
  }
}
