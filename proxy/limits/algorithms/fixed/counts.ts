import { settlesByResponse } from '../../../policy.ts'
import type { Charge, PolicyState } from '../../limiter.ts'
import type { MemoryCounts, MemoryOptions } from '../memory-counts.ts'
import { NONE } from '../slots/key-index.ts'
import { SlotPool } from '../slots/slot-pool.ts'

const MAX_COUNT = 0xffff_ffff

/** Counts in fixed windows: for each client a count, and when its window ends. The ticket is that end. */
export function createFixedCounts({ maxKeys, seed }: MemoryOptions): MemoryCounts {
  const counted = new Uint32Array(maxKeys)
  const endsAtMs = new Float64Array(maxKeys)
  const endOf = (slot: number): number => endsAtMs[slot] ?? 0
  const countOf = (slot: number): number => counted[slot] ?? 0
  const slots = new SlotPool(maxKeys, seed, new Uint32Array(maxKeys), { endsAtMs: endOf })

  /** The slot of a window that has not ended, or `NONE`. */
  function find(table: number, key: string, nowMs: number): number {
    const slot = slots.find(table, key)
    return slot !== NONE && endOf(slot) > nowMs ? slot : NONE
  }

  /** Begins a window now, in place of an ended one. */
  function begin(table: number, { policy, partitionKey }: Charge, nowMs: number): number {
    slots.forget(table, partitionKey)
    const slot = slots.add(table, partitionKey, policy.windowMs, nowMs)
    counted[slot] = 0
    endsAtMs[slot] = nowMs + policy.windowMs
    slots.putLast(table, slot)
    return slot
  }

  function add(slot: number, units: number, pendingSync: boolean): void {
    counted[slot] = Math.min(countOf(slot) + units, MAX_COUNT)
    if (pendingSync) slots.setPending(slot, Math.min(slots.pendingSync(slot) + units, MAX_COUNT))
  }

  return {
    slots,

    exceeds(table, { policy, partitionKey }, units, nowMs) {
      const slot = find(table, partitionKey, nowMs)
      return (slot === NONE ? 0 : countOf(slot)) + units > policy.quota
    },

    charge(table, charge, units, nowMs, counts, pendingSync): PolicyState {
      const { policy } = charge
      let slot = find(table, charge.partitionKey, nowMs)
      let used = slot === NONE ? 0 : countOf(slot)
      const exceeded = used + units > policy.quota
      const isCounted = counts && !exceeded
      if (isCounted) {
        if (slot === NONE) slot = begin(table, charge, nowMs)
        add(slot, units, pendingSync)
        used += units
      }
      const remaining = Math.max(0, policy.quota - used)
      const resetMs = slot === NONE ? policy.windowMs : endOf(slot) - nowMs
      return isCounted && settlesByResponse(policy)
        ? {
            policy,
            exceeded,
            remaining,
            resetMs,
            reservation: { charge, units, isLocal: pendingSync, ticket: endOf(slot) },
          }
        : { policy, exceeded, remaining, resetMs }
    },

    giveBack(table, { charge, isLocal, ticket }, units, nowMs) {
      const slot = find(table, charge.partitionKey, nowMs)
      if (units < 0) {
        add(slot === NONE ? begin(table, charge, nowMs) : slot, -units, isLocal)
        return
      }
      if (slot === NONE || endOf(slot) !== ticket) return
      const pendingSync = slots.pendingSync(slot)
      const takenBack = isLocal ? Math.min(units, pendingSync) : units
      if (isLocal) slots.setPending(slot, pendingSync - takenBack)
      counted[slot] = Math.max(countOf(slot) - takenBack, 0)
      if (countOf(slot) === 0) slots.remove(table, slot)
    },

    read(table, { partitionKey }, nowMs) {
      const slot = find(table, partitionKey, nowMs)
      return slot === NONE ? undefined : { used: countOf(slot), resetMs: endOf(slot) - nowMs }
    },

    takePending: (limit, nowMs) =>
      slots.takePending(limit, (slot) => {
        const amount = slots.pendingSync(slot)
        slots.setPending(slot, 0)
        return endOf(slot) > nowMs ? { endsAtMs: endOf(slot), counted: [amount] } : undefined
      }),

    takeBackPending(table, { partitionKey }, nowMs) {
      const slot = find(table, partitionKey, nowMs)
      const pendingSync = slot === NONE ? 0 : slots.pendingSync(slot)
      if (pendingSync > 0) slots.setPending(slot, pendingSync - 1)
      return pendingSync > 0
    },

    readUse: () => ({ counters: { size: slots.size, capacity: maxKeys, evictions: slots.evictions } }),
  }
}
