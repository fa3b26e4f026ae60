import { maxDelayMs, settlesByResponse, type Policy } from '../../../policy.ts'
import type { TableUse } from '../../../telemetry/telemetry.ts'
import type { Charge, PolicyState, Reservation, Ticket } from '../../limiter.ts'
import type { CounterReading, MemoryCounts, MemoryOptions } from '../memory-counts.ts'
import { NONE } from '../slots/key-index.ts'
import type { PendingSlot, SlotPool } from '../slots/slot-pool.ts'
import { Buckets } from './buckets.ts'

/** Rounding error of sums of fractions of a millisecond, far below a millisecond. */
const ROUNDING_MS = 1e-5

/**
 * Counts in token buckets (the generic cell rate algorithm). A policy's quota is the content of a full bucket, and its window is
 * the time in which an empty bucket fills up. A ticket has four numbers: when the reservation was made, when the bucket will be
 * full again, since when the bucket has not been full, and the units refunded since.
 */
export class BucketCounts implements MemoryCounts {
  readonly slots: SlotPool
  readonly #buckets: Buckets
  readonly #maxKeys: number

  constructor(options: MemoryOptions) {
    this.#buckets = new Buckets(options)
    this.slots = this.#buckets.slots
    this.#maxKeys = options.maxKeys
  }

  exceeds(table: number, charge: Charge, units: number, nowMs: number): boolean {
    return exceedsQuota(charge, this.#debtOf(table, charge, nowMs) + units * unitMs(charge.policy))
  }

  charge(table: number, charge: Charge, units: number, nowMs: number, isLocal: boolean): PolicyState {
    const buckets = this.#buckets
    const { policy, partitionKey } = charge
    const amountMs = units * unitMs(policy)
    const debtMs = this.#debtOf(table, charge, nowMs)
    if (exceedsQuota(charge, debtMs + amountMs)) return overQuota(charge, debtMs, amountMs)
    const slot = buckets.take(table, partitionKey, policy.windowMs, amountMs, nowMs)
    if (isLocal) buckets.addPending(slot, amountMs)
    const state = stateOf(charge, buckets.debtMs(slot, nowMs))
    if (!isLocal && !settlesByResponse(policy) && maxDelayMs(policy) === 0) return state
    const untilMs = nowMs + buckets.debtMs(slot, nowMs)
    const ticket = [nowMs, untilMs, buckets.sinceMs(slot), buckets.givenBackMs(slot)].join(':')
    return { ...state, reservation: { charge, units, isLocal, ticket } }
  }

  peek(table: number, charge: Charge, units: number, nowMs: number): PolicyState {
    const amountMs = units * unitMs(charge.policy)
    const debtMs = this.#debtOf(table, charge, nowMs)
    return exceedsQuota(charge, debtMs + amountMs)
      ? overQuota(charge, debtMs, amountMs)
      : stateOf(charge, debtMs)
  }

  giveBack(table: number, reservation: Reservation, units: number, nowMs: number): void {
    const buckets = this.#buckets
    const { charge, isLocal, ticket } = reservation
    const { policy, partitionKey } = charge
    const amountMs = units * unitMs(charge.policy)
    if (units < 0) {
      const changed = buckets.take(table, partitionKey, policy.windowMs, -amountMs, nowMs)
      if (isLocal) buckets.addPending(changed, -amountMs)
      return
    }
    const slot = buckets.find(table, partitionKey, nowMs)
    if (slot === NONE) return
    // Other requests wait for later turns. A refund would give their turns to new requests, too.
    if (isFollowed(policy, buckets.debtMs(slot, nowMs), ticket, nowMs)) return
    const maxMs = isLocal ? Math.min(amountMs, this.slots.pendingAmount(slot)) : amountMs
    const backMs = Math.min(maxMs, this.#unusedMs(slot, reservation, amountMs, nowMs))
    if (backMs === 0) return
    if (isLocal) buckets.addPending(slot, -backMs)
    buckets.giveBack(table, slot, backMs, nowMs)
  }

  read(table: number, charge: Charge, nowMs: number): CounterReading {
    return debtReading(charge.policy, this.#debtOf(table, charge, nowMs))
  }

  takePending(limit: number, nowMs: number, isAsked?: (shard: number) => boolean): PendingSlot[] {
    return this.#buckets.takePending(limit, nowMs, isAsked)
  }

  takeBackPending(): boolean {
    return false
  }

  readUse(): Readonly<Record<string, TableUse>> {
    const { size, evictions } = this.slots
    return { buckets: { size, capacity: this.#maxKeys, evictions } }
  }

  #debtOf(table: number, { partitionKey }: Charge, nowMs: number): number {
    const slot = this.#buckets.find(table, partitionKey, nowMs)
    return slot === NONE ? 0 : this.#buckets.debtMs(slot, nowMs)
  }

  /**
   * Returns how much of a reservation can be given back: the amount by which the bucket would be fuller without it. That is nothing if the
   * bucket has been full or was reset since.
   */
  #unusedMs(slot: number, { charge, ticket }: Reservation, amountMs: number, nowMs: number): number {
    const buckets = this.#buckets
    const [takenAtMs = 0, untilMs = 0, sinceMs, givenBackMs = 0] = String(ticket).split(':').map(Number)
    if (buckets.sinceMs(slot) !== sinceMs) return 0
    const debtMs = buckets.debtMs(slot, nowMs)
    // The last turn, which is the end of the debt. The debt has not run out since, so no time was lost.
    if (hasWaiting(charge.policy, debtMs) && untilMs - nowMs <= debtMs + ROUNDING_MS)
      return Math.min(amountMs, debtMs)
    // Without the reservation, the bucket would be fuller by at least this amount: the time since may have been lost on a full bucket.
    const surelyMs = amountMs - (nowMs - takenAtMs)
    // Or by the part of the reservation that has not been refilled yet: units refunded meanwhile may have been taken before it.
    const leftMs = untilMs - (buckets.givenBackMs(slot) - givenBackMs) - nowMs
    return Math.max(0, leftMs, surelyMs)
  }
}

function exceedsQuota({ policy }: Charge, debtMs: number): boolean {
  return debtMs > policy.windowMs + maxDelayMs(policy) + ROUNDING_MS
}

function hasWaiting(policy: Policy, debtMs: number): boolean {
  return maxDelayMs(policy) > 0 && debtMs > policy.windowMs
}

/** Whether requests wait, and the reservation is not that of the last request. */
function isFollowed(policy: Policy, debtMs: number, ticket: Ticket, nowMs: number): boolean {
  if (!hasWaiting(policy, debtMs)) return false
  const [, untilMs = 0] = String(ticket).split(':').map(Number)
  return untilMs < nowMs + debtMs - ROUNDING_MS
}

/** Returns the reading of a bucket with this debt; undefined if the bucket is full. */
function debtReading(policy: Policy, debtMs: number): CounterReading {
  if (debtMs === 0) return undefined
  const { remaining, resetMs } = bucketState(policy, debtMs)
  return { used: policy.quota - remaining, resetMs }
}

/** Returns how long a bucket takes to refill one unit, in milliseconds. */
export function unitMs(policy: Policy): number {
  return policy.windowMs / policy.quota
}

function stateOf({ policy }: Charge, debtMs: number): PolicyState {
  const { remaining, resetMs } = bucketState(policy, debtMs)
  return { policy, exceeded: false, remaining, resetMs }
}

/** The state of a charge of this amount that does not fit. It resets when the charge would pass. */
function overQuota({ policy }: Charge, debtMs: number, amountMs: number): PolicyState {
  const { remaining } = bucketState(policy, debtMs)
  const resetMs = debtMs + amountMs - policy.windowMs - maxDelayMs(policy)
  return { policy, exceeded: true, remaining, resetMs }
}

/** Returns the remaining units of a bucket with this debt, and the time until there is one more; the window if the bucket is full. */
export function bucketState(policy: Policy, debtMs: number): { remaining: number; resetMs: number } {
  const unit = unitMs(policy)
  const remaining = Math.max(0, Math.floor((policy.windowMs - debtMs) / unit + ROUNDING_MS))
  const untilMoreMs =
    remaining >= policy.quota ? policy.windowMs : (remaining + 1) * unit - (policy.windowMs - debtMs)
  return { remaining, resetMs: untilMoreMs }
}
