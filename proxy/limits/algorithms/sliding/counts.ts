import { settlesByResponse } from '../../../policy.ts'
import type { Charge, PolicyState } from '../../limiter.ts'
import type { MemoryCounts, MemoryOptions } from '../memory-counts.ts'
import { NONE } from '../slots/key-index.ts'
import { AdmissionTimes } from './admission-times.ts'

/** Counts in sliding windows. Each unit is remembered by its time, which is the ticket of its charge. */
export function createSlidingCounts(
  { maxKeys, seed, shardOf }: MemoryOptions,
  timeCapacity: number,
): MemoryCounts {
  const times = new AdmissionTimes(maxKeys, timeCapacity, seed, shardOf)
  const { slots } = times

  function find(table: number, { policy, partitionKey }: Charge, nowMs: number): number {
    return times.find(table, partitionKey, policy.windowMs, nowMs)
  }

  return {
    slots,

    exceeds(table, charge, units, nowMs) {
      const slot = find(table, charge, nowMs)
      return (slot === NONE ? 0 : times.count(slot)) + units > charge.policy.quota
    },

    charge(table, charge, units, nowMs, counts, pendingSync): PolicyState {
      const { policy, partitionKey } = charge
      const { quota, windowMs } = policy
      let slot = find(table, charge, nowMs)
      const exceeded = (slot === NONE ? 0 : times.count(slot)) + units > quota
      const isCounted = counts && !exceeded
      for (let unit = 0; isCounted && unit < units; unit++) {
        slot = times.admit(table, partitionKey, windowMs, nowMs)
        if (pendingSync) times.markPending(slot)
      }
      const used = slot === NONE ? 0 : times.count(slot)
      const remaining = Math.max(0, quota - used)
      const resetMs = used === 0 ? windowMs : times.leavesAtMs(slot, windowMs) - nowMs
      return isCounted && (pendingSync || settlesByResponse(policy))
        ? {
            policy,
            exceeded,
            remaining,
            resetMs,
            reservation: { charge, units, isLocal: pendingSync, ticket: nowMs },
          }
        : { policy, exceeded, remaining, resetMs }
    },

    giveBack(table, { charge, isLocal, ticket }, units, nowMs) {
      for (let unit = 0; unit < units; unit++) {
        const slot = find(table, charge, nowMs)
        if (slot === NONE) return
        times.remove(table, slot, Number(ticket), isLocal)
      }
    },

    read(table, charge, nowMs) {
      const slot = find(table, charge, nowMs)
      const used = slot === NONE ? 0 : times.count(slot)
      if (used === 0) return undefined
      return { used, resetMs: times.leavesAtMs(slot, charge.policy.windowMs) - nowMs }
    },

    takePending: (limit, nowMs, isAsked) => times.takePending(limit, nowMs, isAsked),

    takeBackPending(table, charge, nowMs) {
      const slot = find(table, charge, nowMs)
      return slot !== NONE && times.unmarkPending(slot)
    },

    readUse: () => ({
      sliding: { size: slots.size, capacity: maxKeys, evictions: slots.evictions },
      'sliding-times': { size: times.timeSize, capacity: timeCapacity, evictions: 0 },
    }),
  }
}
