import { LARGEST_SLIDING_QUOTA, type Policy } from '../../policy.ts'
import type { TableUse } from '../../telemetry/telemetry.ts'
import type { CounterReading } from '../counter-admin.ts'
import { CounterPool } from './counter-pool.ts'
import { NONE } from './key-index.ts'
import type { Charge, Decision, PolicyState } from '../limiter.ts'
import { SlidingPool } from './sliding-pool.ts'

export type MemoryLimiter = {
  /** As `Limiter`, and always at once. */
  decide(charges: readonly Charge[]): Decision
  /** As `decide`, and notes what it counts as still to be added to the shared counters. */
  decideUnsaved(charges: readonly Charge[]): Decision
  /**
   * The shared counters' debt, of at most `limit` counters and times of sliding windows, handed out once. Empty when
   * there is none left.
   */
  takeUnsaved(limit: number): UnsavedCharge[]
  hasUnsaved(): boolean
  /** What is counted for a client; counts nothing. */
  read(charge: Charge): CounterReading
  /** Forgets what is counted for a client under the policy of this name, or under all. */
  forget(policyName: string | undefined, partitionKey: string): void
  readUse(): TableUse
  /** Of sliding windows: clients, and the times that all of them hold together. */
  readSlidingUse(): { readonly clients: TableUse; readonly times: TableUse }
}

/** Requests of one client under one policy that were admitted without the shared counters. */
export type UnsavedCharge = UnsavedCount | UnsavedAdmissions

/** Of a fixed window, which ends at `endsAtMs` by the same clock. */
export type UnsavedCount = Charge & { readonly amount: number; readonly endsAtMs: number }

/** Of a sliding window: when each was admitted, by the same clock, oldest first. */
export type UnsavedAdmissions = Charge & { readonly admittedAtMs: readonly number[] }

/** Times of sliding windows for each client there may be: with its share of them a client costs less than 200 bytes. */
const TIMES_PER_KEY = 12

/**
 * The clock is read in these steps, a power of two of them in a millisecond, so that sums and differences of instants and
 * windows are exact. With finer ones, `(nowMs + windowMs) - nowMs` is a little more than the window now and then, and a
 * client would be told to wait a second longer than that.
 */
const CLOCK_STEPS_IN_MS = 1024

/**
 * Counts in this process: at most `maxKeys` counters of fixed windows and as many clients of sliding ones, with 12 times
 * for each on average. Where room is short, what ends first makes it. A counter, or a client with its share of times,
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
  const { maxKeys, seed } = options
  const now = (): number => Math.floor(options.now() * CLOCK_STEPS_IN_MS) / CLOCK_STEPS_IN_MS
  const timeCapacity = Math.max(maxKeys * TIMES_PER_KEY, LARGEST_SLIDING_QUOTA + TIMES_PER_KEY)
  const pool = new CounterPool(maxKeys, seed)
  const tables = new Map<Policy, number>()
  const policies: Policy[] = []
  /** Made for the first policy that needs it: without one it would be memory in vain. */
  let slidingPool: SlidingPool | undefined

  function tableOf(policy: Policy): number {
    const known = tables.get(policy)
    if (known !== undefined) return known
    const table = policies.push(policy) - 1
    tables.set(policy, table)
    return table
  }

  function findRefusing(charges: readonly Charge[], nowMs: number): Policy | undefined {
    for (const charge of charges) {
      const { policy } = charge
      if (policy.mode === 'shadow') continue
      const consumed = policy.algorithm === 'fixed' ? countFixed(charge, nowMs) : countSliding(charge, nowMs)
      if (consumed >= policy.quota) return policy
    }
    return undefined
  }

  function countFixed({ policy, partitionKey }: Charge, nowMs: number): number {
    const slot = pool.find(tableOf(policy), partitionKey, nowMs)
    return slot === NONE ? 0 : pool.count(slot)
  }

  function countSliding({ policy, partitionKey }: Charge, nowMs: number): number {
    const slot = slidingPool?.find(tableOf(policy), partitionKey, policy.windowMs, nowMs) ?? NONE
    return slot === NONE ? 0 : (slidingPool?.count(slot) ?? 0)
  }

  function readFixed({ policy, partitionKey }: Charge, nowMs: number): CounterReading {
    const slot = pool.find(tableOf(policy), partitionKey, nowMs)
    return slot === NONE ? undefined : { used: pool.count(slot), resetMs: pool.endsAtMs(slot) - nowMs }
  }

  function readSliding({ policy, partitionKey }: Charge, nowMs: number): CounterReading {
    const { windowMs } = policy
    const slot = slidingPool?.find(tableOf(policy), partitionKey, windowMs, nowMs) ?? NONE
    const used = slot === NONE ? 0 : (slidingPool?.count(slot) ?? 0)
    return used === 0
      ? undefined
      : { used, resetMs: (slidingPool?.leavesAtMs(slot, windowMs) ?? nowMs) - nowMs }
  }

  /** Counts the charge where it is asked to and the quota has room. */
  function settleFixed(charge: Charge, nowMs: number, counts: boolean, unsaved: boolean): PolicyState {
    const { policy, partitionKey } = charge
    const table = tableOf(policy)
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

  /** As `settleFixed`, for a sliding window. */
  function settleSliding(charge: Charge, nowMs: number, counts: boolean, unsaved: boolean): PolicyState {
    const { policy, partitionKey } = charge
    const { quota, windowMs } = policy
    const table = tableOf(policy)
    slidingPool ??= new SlidingPool(maxKeys, timeCapacity, seed)
    let slot = slidingPool.find(table, partitionKey, windowMs, nowMs)
    const exceeded = (slot === NONE ? 0 : slidingPool.count(slot)) >= quota
    if (counts && !exceeded) {
      slot = slidingPool.admit(table, partitionKey, windowMs, nowMs)
      if (unsaved) slidingPool.markUnsaved(slot)
    }
    const consumed = slot === NONE ? 0 : slidingPool.count(slot)
    const resetMs = consumed === 0 ? windowMs : slidingPool.leavesAtMs(slot, windowMs) - nowMs
    return { policy, exceeded, remaining: quota - consumed, resetMs }
  }

  function decide(charges: readonly Charge[], unsaved: boolean): Decision {
    const nowMs = now()
    pool.reclaimInPassing(nowMs)
    slidingPool?.reclaimInPassing(nowMs)
    const refusedBy = findRefusing(charges, nowMs)
    const counts = refusedBy === undefined
    const states: PolicyState[] = []
    for (const charge of charges) {
      const settle = charge.policy.algorithm === 'fixed' ? settleFixed : settleSliding
      states.push(settle(charge, nowMs, counts, unsaved))
    }
    return refusedBy === undefined
      ? { outcome: 'allowed', states }
      : { outcome: 'refused', refusedBy, states }
  }

  return {
    decide: (charges) => decide(charges, false),
    decideUnsaved: (charges) => decide(charges, true),
    hasUnsaved: () => pool.unsavedSize + (slidingPool?.unsavedSize ?? 0) > 0,
    takeUnsaved(limit) {
      const taken: UnsavedCharge[] = []
      for (const { table, key, amount, endsAtMs } of pool.takeUnsaved(limit, now())) {
        const policy = policies[table]
        if (policy) taken.push({ policy, partitionKey: key, amount, endsAtMs })
      }
      for (const { table, key, times } of slidingPool?.takeUnsaved(limit - taken.length, now()) ?? []) {
        const policy = policies[table]
        if (policy) taken.push({ policy, partitionKey: key, admittedAtMs: times })
      }
      return taken
    },
    read: (charge) => (charge.policy.algorithm === 'fixed' ? readFixed : readSliding)(charge, now()),
    forget(policyName, partitionKey) {
      for (const [{ name }, table] of tables) {
        if (policyName !== undefined && name !== policyName) continue
        pool.forget(table, partitionKey)
        slidingPool?.forget(table, partitionKey)
      }
    },
    readUse: () => ({ size: pool.size, capacity: maxKeys, evictions: pool.evictions }),
    readSlidingUse() {
      const evictions = slidingPool?.evictions ?? 0
      return {
        clients: { size: slidingPool?.size ?? 0, capacity: maxKeys, evictions },
        times: { size: slidingPool?.timeSize ?? 0, capacity: timeCapacity, evictions: 0 },
      }
    },
  }
}
