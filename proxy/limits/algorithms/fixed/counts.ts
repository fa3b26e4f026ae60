import { settlesByResponse, type Policy } from '../../../policy.ts'
import type { Charge, PolicyState } from '../../limiter.ts'
import type { MemoryCounts, MemoryOptions } from '../memory-counts.ts'
import { NONE } from '../slots/key-index.ts'
import { SlotPool } from '../slots/slot-pool.ts'

const MAX_COUNT = 0xffff_ffff

/** Says when windows end. `timeMs` is its own time, in milliseconds: that of the monotonic clock, or the time of day. */
export type WindowClock = {
  /** All windows of a policy end at once. Else each goes on for as long as it was given when it began. */
  readonly endsForAll: boolean
  readTime(nowMs: number): number
  /** When a window ends that begins now or, with `endsForAll`, that is running. */
  windowEnd(policy: Policy, timeMs: number): number
  /** The same instant on the monotonic clock. */
  toMonotonic(timeMs: number): number
}

/** A window begins with a client's first request. */
export const fromFirstRequest: WindowClock = {
  endsForAll: false,
  readTime: (nowMs) => nowMs,
  windowEnd: ({ windowMs }, nowMs) => nowMs + windowMs,
  toMonotonic: (nowMs) => nowMs,
}

/**
 * Counts in windows: for each client a count, and when its window ends by the clock. The ticket is that end.
 *
 * @param table the name that the metrics show it as
 */
export function createWindowCounts(
  { maxKeys, seed }: MemoryOptions,
  table: string,
  clock: WindowClock,
): MemoryCounts {
  const counted = new Uint32Array(maxKeys)
  const ends = new Float64Array(maxKeys)
  const endOf = (slot: number): number => ends[slot] ?? 0
  const countOf = (slot: number): number => counted[slot] ?? 0
  const endsAtMs = (slot: number): number => clock.toMonotonic(endOf(slot))
  const slots = new SlotPool(maxKeys, seed, new Uint32Array(maxKeys), { endsAtMs })

  /** The slot of a window that has not ended, or `NONE`. */
  function find(table: number, { policy, partitionKey }: Charge, timeMs: number): number {
    const slot = slots.find(table, partitionKey)
    if (slot === NONE || endOf(slot) <= timeMs) return NONE
    // Another end than when it began, if the clock was set back since, or the calendar of the policy was changed.
    if (clock.endsForAll) ends[slot] = clock.windowEnd(policy, timeMs)
    return slot
  }

  /** Begins a window now, in place of an ended one. */
  function begin(table: number, { policy, partitionKey }: Charge, nowMs: number, timeMs: number): number {
    slots.forget(table, partitionKey)
    const slot = slots.add(table, partitionKey, policy.windowMs, nowMs)
    counted[slot] = 0
    ends[slot] = clock.windowEnd(policy, timeMs)
    slots.putLast(table, slot)
    return slot
  }

  function add(slot: number, units: number, pendingSync: boolean): void {
    counted[slot] = Math.min(countOf(slot) + units, MAX_COUNT)
    if (pendingSync) slots.setPending(slot, Math.min(slots.pendingSync(slot) + units, MAX_COUNT))
  }

  return {
    slots,

    exceeds(table, charge, units, nowMs) {
      const slot = find(table, charge, clock.readTime(nowMs))
      return (slot === NONE ? 0 : countOf(slot)) + units > charge.policy.quota
    },

    charge(table, charge, units, nowMs, counts, pendingSync): PolicyState {
      const { policy } = charge
      const timeMs = clock.readTime(nowMs)
      let slot = find(table, charge, timeMs)
      let used = slot === NONE ? 0 : countOf(slot)
      const exceeded = used + units > policy.quota
      const isCounted = counts && !exceeded
      if (isCounted) {
        if (slot === NONE) slot = begin(table, charge, nowMs, timeMs)
        add(slot, units, pendingSync)
        used += units
      }
      const remaining = Math.max(0, policy.quota - used)
      const end = slot === NONE ? clock.windowEnd(policy, timeMs) : endOf(slot)
      const resetMs = end - timeMs
      return isCounted && settlesByResponse(policy)
        ? {
            policy,
            exceeded,
            remaining,
            resetMs,
            reservation: { charge, units, isLocal: pendingSync, ticket: end },
          }
        : { policy, exceeded, remaining, resetMs }
    },

    giveBack(table, { charge, isLocal, ticket }, units, nowMs) {
      const timeMs = clock.readTime(nowMs)
      const slot = find(table, charge, timeMs)
      if (units < 0) {
        add(slot === NONE ? begin(table, charge, nowMs, timeMs) : slot, -units, isLocal)
        return
      }
      if (slot === NONE || endOf(slot) !== ticket) return
      const pendingSync = slots.pendingSync(slot)
      const takenBack = isLocal ? Math.min(units, pendingSync) : units
      if (isLocal) slots.setPending(slot, pendingSync - takenBack)
      counted[slot] = Math.max(countOf(slot) - takenBack, 0)
      if (countOf(slot) === 0) slots.remove(table, slot)
    },

    read(table, charge, nowMs) {
      const timeMs = clock.readTime(nowMs)
      const slot = find(table, charge, timeMs)
      return slot === NONE ? undefined : { used: countOf(slot), resetMs: endOf(slot) - timeMs }
    },

    takePending: (limit, nowMs) =>
      slots.takePending(limit, (slot) => {
        const amount = slots.pendingSync(slot)
        slots.setPending(slot, 0)
        const isRunning = endOf(slot) > clock.readTime(nowMs)
        return isRunning ? { endsAtMs: endsAtMs(slot), counted: [amount] } : undefined
      }),

    takeBackPending(table, charge, nowMs) {
      const slot = find(table, charge, clock.readTime(nowMs))
      const pendingSync = slot === NONE ? 0 : slots.pendingSync(slot)
      if (pendingSync > 0) slots.setPending(slot, pendingSync - 1)
      return pendingSync > 0
    },

    readUse: () => ({ [table]: { size: slots.size, capacity: maxKeys, evictions: slots.evictions } }),
  }
}
