import type { Steps } from '../../../../shared/steps.ts'
import { LARGEST_SLIDING_QUOTA, reservedUnits, takesUnits, type Policy } from '../../../policy.ts'
import type { TableUse } from '../../../telemetry/telemetry.ts'
import type { CounterReading } from '../../counter-admin.ts'
import { CounterPool } from './counter-pool.ts'
import type { Charge, Decision, PolicyState, Reservation } from '../../limiter.ts'
import { createBucketCounts } from './bucket-counts.ts'
import { BucketPool } from './bucket-pool.ts'
import type { Counts } from './counts.ts'
import { createFixedCounts } from './fixed-counts.ts'
import { createInFlightCounts } from './in-flight-counts.ts'
import { createSlidingCounts } from './sliding-counts.ts'
import { NONE } from './key-index.ts'
import { SlidingPool } from './sliding-pool.ts'

export type MemoryLimiter = {
  /** As `Limiter`, and always at once. */
  decide(charges: readonly Charge[]): Decision
  /** As `decide`, and records what it counts as still to be added to the shared counters. */
  decideUnsaved(charges: readonly Charge[]): Decision
  /** As `Limiter`. Counts that `takeUnsaved` has returned stay counted. */
  settle(reservation: Reservation, costUnits: number): void
  /** Counts a request in flight that the shared counters have let through, so that it is known while they are away. */
  addInFlight(charge: Charge): void
  removeInFlight(charge: Charge): void
  /**
   * Returns what is still to be added to the shared counters, of at most `limit` counters and times of sliding windows, each
   * once. Empty if there is nothing left.
   */
  takeUnsaved(limit: number): UnsavedCharge[]
  hasUnsaved(): boolean
  /**
   * What is counted here for one request of the client is in the shared counters already: it is not to be added. Returns false
   * where it has been handed out, and where its cost may still change.
   */
  takeBackUnsaved(charge: Charge): boolean
  /** What is counted for a client; counts nothing. */
  read(charge: Charge): CounterReading
  /** Forgets what is counted for a client under the policy of this name, or under all; not its requests in flight. */
  forget(policyName: string | undefined, partitionKey: string): void
  /**
   * The table of limits is another one now: what was counted under policies that are not in it, by their name, window and
   * algorithm, is freed, but not what is still to be added to the shared counters.
   *
   * @param policies of all rules, those of overrides included
   */
  useTable(policies: readonly Policy[]): Steps<void>
  readUse(): TableUse
  /** Token buckets that are not full. */
  readBucketUse(): TableUse
  /** Clients with requests in flight that count. */
  readInFlightUse(): TableUse
  /** Of sliding windows: clients, and the times that all of them hold together. */
  readSlidingUse(): { readonly clients: TableUse; readonly times: TableUse }
}

/** Requests of one client under one policy that were admitted without the shared counters. */
export type UnsavedCharge = UnsavedCount | UnsavedAdmissions | UnsavedDebt

/** Of a fixed window, which ends at `endsAtMs` by the same clock. */
export type UnsavedCount = Charge & { readonly amount: number; readonly endsAtMs: number }

/** Of a sliding window: when each was admitted, by the same clock, oldest first. */
export type UnsavedAdmissions = Charge & { readonly admittedAtMs: readonly number[] }

/** Of a token bucket: when one that had paid nothing but this debt would be full, by the same clock. */
export type UnsavedDebt = Charge & { readonly untilFullMs: number }

/** Times of sliding windows for each client there may be: with its share of them a client costs less than 200 bytes. */
const TIMES_PER_KEY = 12

/**
 * The clock is rounded to this step, a power of two per millisecond, so that sums and differences of times and windows are
 * exact. Otherwise `(nowMs + windowMs) - nowMs` is sometimes slightly more than the window, and `Retry-After`, which is rounded
 * up, a second too long.
 */
const CLOCK_STEPS_IN_MS = 1024

/**
 * Counts in this process: at most `maxKeys` counters of fixed windows and as many clients of sliding windows, with 12 times
 * for each on average. When it is full, what ends first is evicted. A counter, or a client with its share of times, takes at
 * most 200 bytes of resident memory with an address as its key. Decisions are synchronous; there is nothing to close.
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
  /** The pools' tables of policies that have been asked for since the table of limits changed. */
  const tables = new Map<Policy, number>()
  /** By `countedAs`. */
  const tableByCounts = new Map<string, number>()
  /** By table: of the policies that share it the one with the largest quota; undefined for one to be used again. */
  const policies: (Policy | undefined)[] = []
  const fixed = createFixedCounts(pool, tableOf)
  const inFlight = createInFlightCounts()
  /** Created for the first policy that needs it, to save memory if none does. */
  let slidingPool: SlidingPool | undefined
  let sliding: Counts | undefined
  let bucketPool: BucketPool | undefined
  let buckets: Counts | undefined

  function tableOf({ policy }: Charge): number {
    const known = tables.get(policy)
    if (known !== undefined) return known
    const table = tableByCounts.get(countedAs(policy)) ?? addTable(policy)
    // Of what is added to the shared counters no more is kept than the largest quota allows.
    if ((policies[table]?.quota ?? 0) < policy.quota) policies[table] = policy
    tables.set(policy, table)
    return table
  }

  function addTable(policy: Policy): number {
    const free = policies.indexOf(undefined)
    const table = free === -1 ? policies.length : free
    policies[table] = policy
    tableByCounts.set(countedAs(policy), table)
    return table
  }

  function* useTable(next: readonly Policy[]): Steps<void> {
    const largest = new Map<string, Policy>()
    for (const policy of next) {
      const known = largest.get(countedAs(policy))
      if (!known || known.quota < policy.quota) largest.set(countedAs(policy), policy)
      yield
    }
    tables.clear()
    inFlight.prune()
    const dropped = new Set<number>()
    for (const [counts, table] of tableByCounts) {
      const policy = largest.get(counts)
      if (policy) policies[table] = policy
      else dropped.add(table)
    }
    if (dropped.size > 0) dropTables(dropped)
  }

  /** In one pass over all counters, however many tables are dropped. */
  function dropTables(dropped: ReadonlySet<number>): void {
    const left = [pool, slidingPool, bucketPool].map((each) => each?.dropTables(dropped))
    for (const [counts, table] of tableByCounts) {
      if (!dropped.has(table) || left.some((tables) => tables?.has(table))) continue
      policies[table] = undefined
      tableByCounts.delete(counts)
    }
  }

  function countsOf({ algorithm }: Policy): Counts {
    if (algorithm === 'fixed') return fixed
    if (algorithm === 'concurrency') return inFlight
    if (algorithm === 'token-bucket') {
      bucketPool ??= new BucketPool(maxKeys, seed)
      return (buckets ??= createBucketCounts(bucketPool, tableOf))
    }
    slidingPool ??= new SlidingPool(maxKeys, timeCapacity, seed)
    return (sliding ??= createSlidingCounts(slidingPool, tableOf))
  }

  function findRefusing(charges: readonly Charge[], nowMs: number): Policy | undefined {
    for (const charge of charges) {
      const { policy } = charge
      if (policy.mode === 'enforce' && countsOf(policy).exceeds(charge, unitsOf(charge), nowMs)) return policy
    }
    return undefined
  }

  function decide(charges: readonly Charge[], unsaved: boolean): Decision {
    const nowMs = now()
    pool.reclaimInPassing(nowMs)
    slidingPool?.reclaimInPassing(nowMs)
    bucketPool?.reclaimInPassing(nowMs)
    const refusedBy = findRefusing(charges, nowMs)
    const isAllowed = refusedBy === undefined
    const states: PolicyState[] = []
    for (const charge of charges)
      states.push(countsOf(charge.policy).charge(charge, unitsOf(charge), nowMs, isAllowed, unsaved))
    return isAllowed ? { outcome: 'allowed', states } : { outcome: 'refused', refusedBy, states }
  }

  return {
    decide: (charges) => decide(charges, false),
    decideUnsaved: (charges) => decide(charges, true),
    settle(reservation, costUnits) {
      const { charge, units } = reservation
      const isOver = charge.policy.algorithm === 'concurrency'
      if (isOver || units !== costUnits)
        countsOf(charge.policy).giveBack(reservation, isOver ? units : units - costUnits, now())
    },
    addInFlight: (charge) => inFlight.add(charge),
    removeInFlight: (charge) => inFlight.remove(charge),
    hasUnsaved: () => pool.unsavedSize + (slidingPool?.unsavedSize ?? 0) + (bucketPool?.unsavedSize ?? 0) > 0,
    takeBackUnsaved(charge) {
      const { policy, partitionKey } = charge
      if (takesUnits(policy)) return false
      if (policy.algorithm === 'fixed') {
        const slot = pool.find(tableOf(charge), partitionKey, now())
        return slot !== NONE && pool.takeBackUnsaved(slot, 1) === 1
      }
      const slot = slidingPool?.find(tableOf(charge), partitionKey, policy.windowMs, now()) ?? NONE
      return slot !== NONE && slidingPool?.unmarkUnsaved(slot) === true
    },
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
      for (const { table, key, debtMs } of bucketPool?.takeUnsaved(limit - taken.length, now()) ?? []) {
        const policy = policies[table]
        if (policy) taken.push({ policy, partitionKey: key, untilFullMs: now() + debtMs })
      }
      return taken
    },
    read: (charge) => countsOf(charge.policy).read(charge, now()),
    forget(policyName, partitionKey) {
      for (const [table, policy] of policies.entries()) {
        if (!policy || (policyName !== undefined && policy.name !== policyName)) continue
        pool.forget(table, partitionKey)
        slidingPool?.forget(table, partitionKey)
        bucketPool?.forget(table, partitionKey)
      }
    },
    useTable,
    readUse: () => ({ size: pool.size, capacity: maxKeys, evictions: pool.evictions }),
    readBucketUse: () => ({
      size: bucketPool?.size ?? 0,
      capacity: maxKeys,
      evictions: bucketPool?.evictions ?? 0,
    }),
    readInFlightUse: () => ({ size: inFlight.size, capacity: maxKeys, evictions: 0 }),
    readSlidingUse() {
      const evictions = slidingPool?.evictions ?? 0
      return {
        clients: { size: slidingPool?.size ?? 0, capacity: maxKeys, evictions },
        times: { size: slidingPool?.timeSize ?? 0, capacity: timeCapacity, evictions: 0 },
      }
    },
  }
}

/**
 * Policies of which this is the same are counted together: what a rule says of some clients only with what it says of the
 * others, and what it says now with what it said before its table was changed.
 */
function countedAs({ name, algorithm, windowMs, sharedWindowMs = windowMs }: Policy): string {
  return `${algorithm} ${sharedWindowMs} ${name}`
}

function unitsOf({ policy, units }: Charge): number {
  return units ?? reservedUnits(policy)
}
