import { isReserved } from '../../../policy.ts'
import type { Charge, PolicyState } from '../../limiter.ts'
import type { CounterPool } from './counter-pool.ts'
import type { Counts } from './counts.ts'
import { NONE } from './key-index.ts'

/**
 * Counts in fixed windows.
 *
 * @param tableOf the pool's table of a charge's policy
 */
export function createFixedCounts(pool: CounterPool, tableOf: (charge: Charge) => number): Counts {
  function usedBy(charge: Charge, nowMs: number): number {
    const slot = pool.find(tableOf(charge), charge.partitionKey, nowMs)
    return slot === NONE ? 0 : pool.count(slot)
  }

  return {
    exceeds: (charge, units, nowMs) => usedBy(charge, nowMs) + units > charge.policy.quota,

    charge(charge, units, nowMs, counts, unsaved): PolicyState {
      const { policy, partitionKey } = charge
      const table = tableOf(charge)
      let slot = pool.find(table, partitionKey, nowMs)
      let used = slot === NONE ? 0 : pool.count(slot)
      const exceeded = used + units > policy.quota
      const isCounted = counts && !exceeded
      if (isCounted) {
        if (slot === NONE) slot = pool.begin(table, partitionKey, policy.windowMs, nowMs)
        pool.add(slot, units)
        if (unsaved) pool.addUnsaved(slot, units)
        used += units
      }
      const endsAtMs = slot === NONE ? nowMs + policy.windowMs : pool.endsAtMs(slot)
      const remaining = Math.max(0, policy.quota - used)
      const resetMs = slot === NONE ? policy.windowMs : endsAtMs - nowMs
      return isCounted && isReserved(policy)
        ? {
            policy,
            exceeded,
            remaining,
            resetMs,
            reservation: { charge, units, isLocal: unsaved, ticket: endsAtMs },
          }
        : { policy, exceeded, remaining, resetMs }
    },

    giveBack({ charge, isLocal, ticket }, units, nowMs) {
      const { policy, partitionKey } = charge
      const table = tableOf(charge)
      let slot = pool.find(table, partitionKey, nowMs)
      if (units > 0) {
        if (slot === NONE || pool.endsAtMs(slot) !== ticket) return
        // What has been handed out to the shared counters stays counted there.
        const takenBack = isLocal ? pool.takeBackUnsaved(slot, units) : units
        pool.subtract(slot, takenBack)
        if (pool.count(slot) === 0) pool.forget(table, partitionKey)
        return
      }
      if (slot === NONE) slot = pool.begin(table, partitionKey, policy.windowMs, nowMs)
      pool.add(slot, -units)
      if (isLocal) pool.addUnsaved(slot, -units)
    },

    read(charge, nowMs) {
      const slot = pool.find(tableOf(charge), charge.partitionKey, nowMs)
      return slot === NONE ? undefined : { used: pool.count(slot), resetMs: pool.endsAtMs(slot) - nowMs }
    },
  }
}
