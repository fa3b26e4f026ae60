import { isReserved } from '../../../policy.ts'
import type { Charge, PolicyState } from '../../limiter.ts'
import type { Counts } from './counts.ts'
import { NONE } from './key-index.ts'
import type { SlidingPool } from './sliding-pool.ts'

/**
 * Counts in sliding windows. A charge is one unit: each is remembered by its time.
 *
 * @param tableOf the pool's table of a charge's policy
 */
export function createSlidingCounts(pool: SlidingPool, tableOf: (charge: Charge) => number): Counts {
  function findSlot(charge: Charge, nowMs: number): number {
    return pool.find(tableOf(charge), charge.partitionKey, charge.policy.windowMs, nowMs)
  }

  function usedBy(charge: Charge, nowMs: number): number {
    const slot = findSlot(charge, nowMs)
    return slot === NONE ? 0 : pool.count(slot)
  }

  return {
    exceeds: (charge, _units, nowMs) => usedBy(charge, nowMs) >= charge.policy.quota,

    charge(charge, units, nowMs, counts, unsaved): PolicyState {
      const { policy, partitionKey } = charge
      const { quota, windowMs } = policy
      let slot = findSlot(charge, nowMs)
      const exceeded = (slot === NONE ? 0 : pool.count(slot)) >= quota
      const isCounted = counts && !exceeded
      if (isCounted) {
        slot = pool.admit(tableOf(charge), partitionKey, windowMs, nowMs)
        if (unsaved) pool.markUnsaved(slot)
      }
      const used = slot === NONE ? 0 : pool.count(slot)
      const remaining = Math.max(0, quota - used)
      const resetMs = used === 0 ? windowMs : pool.leavesAtMs(slot, windowMs) - nowMs
      return isCounted && isReserved(policy)
        ? {
            policy,
            exceeded,
            remaining,
            resetMs,
            reservation: { charge, units, isLocal: unsaved, ticket: nowMs },
          }
        : { policy, exceeded, remaining, resetMs }
    },

    giveBack({ charge, isLocal, ticket }, units, nowMs) {
      const slot = findSlot(charge, nowMs)
      if (slot !== NONE && units > 0) pool.remove(tableOf(charge), slot, Number(ticket), isLocal)
    },

    read(charge, nowMs) {
      const slot = findSlot(charge, nowMs)
      const used = slot === NONE ? 0 : pool.count(slot)
      if (used === 0) return undefined
      return { used, resetMs: pool.leavesAtMs(slot, charge.policy.windowMs) - nowMs }
    },
  }
}
