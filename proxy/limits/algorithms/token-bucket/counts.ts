import { maxDelayMs, settlesByResponse, type Policy } from '../../../policy.ts'
import type { Charge, PolicyState, Ticket } from '../../limiter.ts'
import type { CounterReading, MemoryCounts, MemoryOptions } from '../memory-counts.ts'
import { NONE } from '../slots/key-index.ts'
import { Debts } from './debts.ts'

/** Rounding error of sums of fractions of a millisecond, far below a millisecond. */
const ROUNDING_MS = 1e-5

/**
 * Counts in token buckets (the generic cell rate algorithm). A policy's quota is the content of a full bucket, and its window the
 * time in which an empty one fills up. The ticket is when a reservation was taken, when it will have run out of the bucket, since
 * when that was not full, and the units refunded since then.
 */
export function createBucketCounts({ maxKeys, seed, shardOf }: MemoryOptions): MemoryCounts {
  const debts = new Debts(maxKeys, seed, shardOf)
  const { slots } = debts

  function debtOf(table: number, { partitionKey }: Charge, nowMs: number): number {
    const slot = debts.find(table, partitionKey, nowMs)
    return slot === NONE ? 0 : debts.debtMs(slot, nowMs)
  }

  const isOver = ({ policy }: Charge, debtMs: number): boolean =>
    debtMs > policy.windowMs + maxDelayMs(policy) + ROUNDING_MS

  return {
    slots,

    exceeds: (table, charge, units, nowMs) =>
      isOver(charge, debtOf(table, charge, nowMs) + units * unitMs(charge)),

    charge(table, charge, units, nowMs, counts, pendingSync): PolicyState {
      const { policy, partitionKey } = charge
      const amountMs = units * unitMs(charge)
      const debtMs = debtOf(table, charge, nowMs)
      const exceeded = isOver(charge, debtMs + amountMs)
      if (!counts || exceeded)
        return stateOf(
          charge,
          debtMs,
          exceeded ? debtMs + amountMs - policy.windowMs - maxDelayMs(policy) : undefined,
        )
      const slot = debts.take(table, partitionKey, policy.windowMs, amountMs, nowMs)
      if (pendingSync) debts.addPending(slot, amountMs)
      const state = stateOf(charge, debts.debtMs(slot, nowMs))
      if (!pendingSync && !settlesByResponse(policy) && maxDelayMs(policy) === 0) return state
      const place = [nowMs, nowMs + debts.debtMs(slot, nowMs), debts.sinceMs(slot), debts.givenBackMs(slot)]
      return { ...state, reservation: { charge, units, isLocal: pendingSync, ticket: place.join(':') } }
    },

    giveBack(table, { charge, isLocal, ticket }, units, nowMs) {
      const { policy, partitionKey } = charge
      const amountMs = units * unitMs(charge)
      if (units < 0) {
        const changed = debts.take(table, partitionKey, policy.windowMs, -amountMs, nowMs)
        if (isLocal) debts.addPending(changed, -amountMs)
        return
      }
      const slot = debts.find(table, partitionKey, nowMs)
      if (slot === NONE) return
      // Others wait for turns behind it, which would become those of new requests too.
      if (isFollowed(policy, debts.debtMs(slot, nowMs), ticket, nowMs)) return
      const [takenAtMs = 0, untilMs = 0, sinceMs, givenBackMs = 0] = String(ticket).split(':').map(Number)
      // Without the reservation the bucket would be this much fuller at least: the time since may have been lost on a full one.
      const surelyMs = amountMs - (nowMs - takenAtMs)
      // Or so much of it has not run out: units refunded meanwhile may have been taken before it.
      const leftMs =
        debts.sinceMs(slot) === sinceMs ? untilMs - (debts.givenBackMs(slot) - givenBackMs) - nowMs : 0
      const maxMs = isLocal ? Math.min(amountMs, slots.pendingSync(slot)) : amountMs
      const backMs = Math.min(maxMs, Math.max(0, leftMs, surelyMs))
      if (backMs === 0) return
      if (isLocal) debts.addPending(slot, -backMs)
      debts.giveBack(table, slot, backMs, nowMs)
    },

    read: (table, charge, nowMs) => debtReading(charge.policy, debtOf(table, charge, nowMs)),
    takePending: (limit, nowMs, isAsked) => debts.takePending(limit, nowMs, isAsked),
    takeBackPending: () => false,
    readUse: () => ({ buckets: { size: slots.size, capacity: maxKeys, evictions: slots.evictions } }),
  }
}

/** Whether requests wait, and the reservation is not the last of them. */
function isFollowed(policy: Policy, debtMs: number, ticket: Ticket, nowMs: number): boolean {
  if (maxDelayMs(policy) === 0 || debtMs <= policy.windowMs) return false
  const [, untilMs = 0] = String(ticket).split(':').map(Number)
  return untilMs < nowMs + debtMs - ROUNDING_MS
}

/** The state of a bucket by its debt; undefined if it is full. */
function debtReading(policy: Policy, debtMs: number): CounterReading {
  if (debtMs === 0) return undefined
  const { remaining, resetMs } = stateOf({ policy }, debtMs)
  return { used: policy.quota - remaining, resetMs }
}

/** How long a bucket takes to get one unit back. */
function unitMs({ policy }: Pick<Charge, 'policy'>): number {
  return policy.windowMs / policy.quota
}

/** @param waitMs how long until the charge would pass; undefined where it does */
function stateOf(charge: Pick<Charge, 'policy'>, debtMs: number, waitMs?: number): PolicyState {
  const { policy } = charge
  const unit = unitMs(charge)
  const remaining = Math.max(0, Math.floor((policy.windowMs - debtMs) / unit + ROUNDING_MS))
  const untilMoreMs =
    remaining >= policy.quota ? policy.windowMs : (remaining + 1) * unit - (policy.windowMs - debtMs)
  return { policy, exceeded: waitMs !== undefined, remaining, resetMs: waitMs ?? untilMoreMs }
}
