import type { Policy } from '../policy.ts'
import type { TableUse } from '../telemetry.ts'
import { CounterPool } from './counter-pool.ts'
import { NONE } from './key-index.ts'
import type { Charge, Decision, PolicyState } from './limiter.ts'
import { MemoryCounters } from './memory-counters.ts'

export type MemoryLimiter = {
  /** As `Limiter`, and always at once. */
  decide(charges: readonly Charge[]): Decision
  /** As `decide`, and notes what it counts as still to be added to the shared counters. */
  decideUnsaved(charges: readonly Charge[]): Decision
  /** The shared counters' debt, of at most `limit` counters, handed out once. Empty when there is none left. */
  takeUnsaved(limit: number): UnsavedCharge[]
  hasUnsaved(): boolean
  /** One policy's counters, for an operator's questions. */
  countersOf(policy: Policy): MemoryCounters
  readUse(): TableUse
}

/** Requests of one client under one policy that were admitted without the shared counters; `endsAtMs` by the same clock. */
export type UnsavedCharge = Charge & { readonly amount: number; readonly endsAtMs: number }

/**
 * Counts in this process, at most `maxKeys` counters at once: then the one whose window ends first makes room. Each
 * costs at most 200 bytes of resident memory with an address as its key. It answers at once and needs no closing.
 *
 * @param options.seed any integer that clients cannot know
 * @param options.now milliseconds of a monotonic clock
 */
export function createMemoryLimiter(options: {
  readonly maxKeys: number
  readonly seed: number
  readonly now: () => number
}): MemoryLimiter {
  const { now } = options
  const pool = new CounterPool(options.maxKeys, options.seed)
  const byPolicy = new Map<Policy, MemoryCounters>()
  const policies: Policy[] = []

  function countersOf(policy: Policy): MemoryCounters {
    const known = byPolicy.get(policy)
    if (known) return known
    const counters = new MemoryCounters(policy, policies.push(policy) - 1, pool, now)
    byPolicy.set(policy, counters)
    return counters
  }

  function findRefusing(charges: readonly Charge[], nowMs: number): Policy | undefined {
    for (const { policy, partitionKey } of charges) {
      if (policy.mode === 'shadow') continue
      const slot = pool.find(countersOf(policy).table, partitionKey, nowMs)
      const consumed = slot === NONE ? 0 : pool.count(slot)
      if (consumed >= policy.quota) return policy
    }
    return undefined
  }

  /** Counts the charge where it is asked to and the quota has room. */
  function settle(charge: Charge, nowMs: number, counts: boolean, unsaved: boolean): PolicyState {
    const { policy, partitionKey } = charge
    const { table } = countersOf(policy)
    let slot = pool.find(table, partitionKey, nowMs)
    let consumed = slot === NONE ? 0 : pool.count(slot)
    const exceeded = consumed >= policy.quota
    if (counts && !exceeded) {
      if (slot === NONE) slot = pool.begin(table, partitionKey, policy.windowMs, nowMs)
      pool.add(slot, 1)
      if (unsaved) pool.markUnsaved(slot)
      consumed += 1
    }
    const resetMs = slot === NONE ? policy.windowMs : pool.endsAtMs(slot) - nowMs
    return { policy, exceeded, remaining: Math.max(0, policy.quota - consumed), resetMs }
  }

  function decide(charges: readonly Charge[], unsaved: boolean): Decision {
    const nowMs = now()
    pool.reclaimInPassing(nowMs)
    const refusedBy = findRefusing(charges, nowMs)
    const states: PolicyState[] = []
    for (const charge of charges) states.push(settle(charge, nowMs, refusedBy === undefined, unsaved))
    return refusedBy === undefined
      ? { outcome: 'allowed', states }
      : { outcome: 'refused', refusedBy, states }
  }

  return {
    decide: (charges) => decide(charges, false),
    decideUnsaved: (charges) => decide(charges, true),
    hasUnsaved: () => pool.unsavedSize > 0,
    takeUnsaved: (limit) =>
      pool.takeUnsaved(limit, now()).flatMap(({ table, key, amount, endsAtMs }) => {
        const policy = policies[table]
        return policy ? [{ policy, partitionKey: key, amount, endsAtMs }] : []
      }),
    countersOf,
    readUse: () => ({ size: pool.size, capacity: pool.capacity, evictions: pool.evictions }),
  }
}
