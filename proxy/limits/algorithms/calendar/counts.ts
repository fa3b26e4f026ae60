import { settlesByResponse, type Policy } from '../../../policy.ts'
import type { Charge, PolicyState } from '../../limiter.ts'
import type { MemoryCounts, MemoryOptions } from '../memory-counts.ts'
import { NONE } from '../slots/key-index.ts'
import { SlotPool } from '../slots/slot-pool.ts'
import { windowFrom } from './calendar-windows.ts'

const MAX_COUNT = 0xffff_ffff

/**
 * Counts in windows of the calendar: for each client a count, and the border at which its window ends, by the time of day. So the
 * window ends there also if the machine's clock was set in between, or the machine was asleep. The ticket is that border.
 */
export function createCalendarCounts({ maxKeys, seed, wallNow = Date.now }: MemoryOptions): MemoryCounts {
  const counted = new Uint32Array(maxKeys)
  const borders = new Float64Array(maxKeys)
  /** The time of day minus the monotonic clock, as of the last request. */
  let offsetMs = 0
  const borderOf = (slot: number): number => borders[slot] ?? 0
  const countOf = (slot: number): number => counted[slot] ?? 0
  const endOf = (slot: number): number => borderOf(slot) - offsetMs
  const slots = new SlotPool(maxKeys, seed, new Uint32Array(maxKeys), { endsAtMs: endOf })

  /** @returns the time of day */
  function readClock(nowMs: number): number {
    const epochMs = wallNow()
    offsetMs = epochMs - nowMs
    return epochMs
  }

  /**
   * The slot of a window that has not ended, or `NONE`.
   *
   * @param border of the running window. The slot has another one if the time zone was changed, or the clock set back
   */
  function find(table: number, key: string, epochMs: number, border: number): number {
    const slot = slots.find(table, key)
    if (slot === NONE || borderOf(slot) <= epochMs) return NONE
    borders[slot] = border
    return slot
  }

  /** Begins to count in the running window, in place of an ended one. */
  function begin(table: number, { policy, partitionKey }: Charge, nowMs: number, border: number): number {
    slots.forget(table, partitionKey)
    const slot = slots.add(table, partitionKey, policy.windowMs, nowMs)
    counted[slot] = 0
    borders[slot] = border
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
      const epochMs = readClock(nowMs)
      const slot = find(table, partitionKey, epochMs, borderFrom(policy, epochMs))
      return (slot === NONE ? 0 : countOf(slot)) + units > policy.quota
    },

    charge(table, charge, units, nowMs, counts, pendingSync): PolicyState {
      const { policy } = charge
      const epochMs = readClock(nowMs)
      const border = borderFrom(policy, epochMs)
      let slot = find(table, charge.partitionKey, epochMs, border)
      let used = slot === NONE ? 0 : countOf(slot)
      const exceeded = used + units > policy.quota
      const isCounted = counts && !exceeded
      if (isCounted) {
        if (slot === NONE) slot = begin(table, charge, nowMs, border)
        add(slot, units, pendingSync)
        used += units
      }
      const remaining = Math.max(0, policy.quota - used)
      const resetMs = border - epochMs
      return isCounted && settlesByResponse(policy)
        ? {
            policy,
            exceeded,
            remaining,
            resetMs,
            reservation: { charge, units, isLocal: pendingSync, ticket: border },
          }
        : { policy, exceeded, remaining, resetMs }
    },

    giveBack(table, { charge, isLocal, ticket }, units, nowMs) {
      const epochMs = readClock(nowMs)
      const border = borderFrom(charge.policy, epochMs)
      const slot = find(table, charge.partitionKey, epochMs, border)
      if (units < 0) {
        add(slot === NONE ? begin(table, charge, nowMs, border) : slot, -units, isLocal)
        return
      }
      if (slot === NONE || border !== ticket) return
      const pendingSync = slots.pendingSync(slot)
      const takenBack = isLocal ? Math.min(units, pendingSync) : units
      if (isLocal) slots.setPending(slot, pendingSync - takenBack)
      counted[slot] = Math.max(countOf(slot) - takenBack, 0)
      if (countOf(slot) === 0) slots.remove(table, slot)
    },

    read(table, { policy, partitionKey }, nowMs) {
      const epochMs = readClock(nowMs)
      const border = borderFrom(policy, epochMs)
      const slot = find(table, partitionKey, epochMs, border)
      return slot === NONE ? undefined : { used: countOf(slot), resetMs: border - epochMs }
    },

    takePending: (limit, nowMs) =>
      slots.takePending(limit, (slot) => {
        const amount = slots.pendingSync(slot)
        slots.setPending(slot, 0)
        const isRunning = borderOf(slot) > readClock(nowMs)
        return isRunning ? { endsAtMs: endOf(slot), counted: [amount] } : undefined
      }),

    takeBackPending(table, { policy, partitionKey }, nowMs) {
      const epochMs = readClock(nowMs)
      const slot = find(table, partitionKey, epochMs, borderFrom(policy, epochMs))
      const pendingSync = slot === NONE ? 0 : slots.pendingSync(slot)
      if (pendingSync > 0) slots.setPending(slot, pendingSync - 1)
      return pendingSync > 0
    },

    readUse: () => ({ calendar: { size: slots.size, capacity: maxKeys, evictions: slots.evictions } }),
  }
}

/** The end of the window that runs at this time. */
function borderFrom(policy: Policy, epochMs: number): number {
  return epochMs + windowFrom(policy, epochMs)
}
