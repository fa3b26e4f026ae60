import { isReserved, type Policy } from '../../../policy.ts'
import type { CounterReading } from '../../counter-admin.ts'
import type { Charge, PolicyState } from '../../limiter.ts'
import type { BucketPool } from './bucket-pool.ts'
import type { Counts } from './counts.ts'
import { NONE } from './key-index.ts'

/** Far below a millisecond: what sums of fractions of a millisecond can be off. */
const ROUNDING_MS = 1e-5

/**
 * Counts in token buckets (the generic cell rate algorithm). A policy's quota is what a full bucket holds, and its window
 * how long an empty one takes to be full.
 *
 * @param tableOf the pool's table of a charge's policy
 */
export function createBucketCounts(pool: BucketPool, tableOf: (charge: Charge) => number): Counts {
  function debtOf(charge: Charge, nowMs: number): number {
    const slot = pool.find(tableOf(charge), charge.partitionKey, nowMs)
    return slot === NONE ? 0 : pool.debtMs(slot, nowMs)
  }

  const isOver = ({ policy }: Charge, debtMs: number): boolean => debtMs > policy.windowMs + ROUNDING_MS

  return {
    exceeds: (charge, units, nowMs) => isOver(charge, debtOf(charge, nowMs) + units * unitMs(charge)),

    charge(charge, units, nowMs, counts, unsaved): PolicyState {
      const { policy, partitionKey } = charge
      const amountMs = units * unitMs(charge)
      const debtMs = debtOf(charge, nowMs)
      const exceeded = isOver(charge, debtMs + amountMs)
      if (!counts || exceeded)
        return stateOf(charge, debtMs, exceeded ? debtMs + amountMs - policy.windowMs : undefined)
      const slot = pool.take(tableOf(charge), partitionKey, policy.windowMs, amountMs, nowMs)
      if (unsaved) pool.addUnsaved(slot, amountMs)
      const state = stateOf(charge, pool.debtMs(slot, nowMs))
      if (!isReserved(policy)) return state
      const place = [nowMs, nowMs + pool.debtMs(slot, nowMs), pool.sinceMs(slot), pool.givenBackMs(slot)]
      return { ...state, reservation: { charge, units, isLocal: unsaved, ticket: place.join(':') } }
    },

    giveBack({ charge, isLocal, ticket }, units, nowMs) {
      const { policy, partitionKey } = charge
      const table = tableOf(charge)
      const amountMs = units * unitMs(charge)
      if (units < 0) {
        const changed = pool.take(table, partitionKey, policy.windowMs, -amountMs, nowMs)
        if (isLocal) pool.addUnsaved(changed, -amountMs)
        return
      }
      const slot = pool.find(table, partitionKey, nowMs)
      if (slot === NONE) return
      const [takenAtMs = 0, untilMs = 0, sinceMs, givenBackMs = 0] = String(ticket).split(':').map(Number)
      // Without the reservation the bucket would be this much fuller at least: what has passed since may have been lost on a
      // full one.
      const surelyMs = amountMs - (nowMs - takenAtMs)
      // Or so much of it has not run out: what was given back meanwhile may have stood before it.
      const leftMs =
        pool.sinceMs(slot) === sinceMs ? untilMs - (pool.givenBackMs(slot) - givenBackMs) - nowMs : 0
      const mostMs = isLocal ? Math.min(amountMs, pool.unsavedMs(slot)) : amountMs
      const backMs = Math.min(mostMs, Math.max(0, leftMs, surelyMs))
      if (backMs === 0) return
      if (isLocal) pool.addUnsaved(slot, -backMs)
      pool.giveBack(table, slot, backMs, nowMs)
    },

    read: (charge, nowMs) => debtReading(charge.policy, debtOf(charge, nowMs)),
  }
}

/** What a bucket's debt comes to; undefined where it is full. */
export function debtReading(policy: Policy, debtMs: number): CounterReading {
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
