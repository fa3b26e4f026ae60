import type { Steps } from '../../../../shared/steps.ts'
import { refusesOver, reservedUnits, type Policy } from '../../../policy.ts'
import type { TableUse } from '../../../telemetry/telemetry.ts'
import type { Algorithm } from '../../algorithms/algorithm.ts'
import type { CounterReading, MemoryCounts } from '../../algorithms/memory-counts.ts'
import { algorithmOf, algorithms, countsInFlight, takesUnits } from '../../algorithms/registry.ts'
import type { PendingSlot } from '../../algorithms/slots/slot-pool.ts'
import type { Charge, Decision, PolicyState, Reservation } from '../../limiter.ts'
import type { MemoryPlans } from '../../plans/stored-plans.ts'

export type MemoryLimiter = {
  /** As `Limiter`, and always at once. */
  decide(charges: readonly Charge[]): Decision
  /** As `decide`, and records what it counts as still to be added to the shared counters. */
  decidePendingSync(charges: readonly Charge[]): Decision
  /** As `Limiter`. Counts that `takePending` has returned stay counted. */
  settle(reservation: Reservation, costUnits: number): void
  /** Counts a request in flight that the shared counters have let through, so that it is known while they are away. */
  addInFlight(charge: Charge): void
  removeInFlight(charge: Charge): void
  /**
   * Returns the counts pending sync with the shared counters, of at most `limit` counters and times of sliding windows, each
   * once. Empty if there is nothing left.
   */
  takePending(limit: number): PendingCharge[]
  hasPending(): boolean
  /**
   * The local count of one request of the client is in the shared counters already: removes it from the pending sync. Returns false
   * where it has been handed out, and where its cost may still change.
   */
  takeBackPending(charge: Charge): boolean
  /** The count of a client; counts nothing. */
  read(charge: Charge): CounterReading
  /** Forgets the counts of a client under the policy of this name, or under all; not its requests in flight. */
  forget(policyName: string | undefined, partitionKey: string): void
  /**
   * The table of limits has changed: frees counts under policies that are not in it, by their name, window and algorithm, except
   * those pending sync with the shared counters.
   *
   * @param policies of all rules, those of overrides included
   */
  useTable(policies: readonly Policy[]): Steps<void>
  /** The tables of all algorithms, by their names, and how full each is now. */
  readonly tables: ReadonlyMap<string, () => TableUse>
}

/** Requests of one client under one policy that were admitted without the shared counters, until `endsAtMs` by the same clock. */
export type PendingCharge = Charge & Pick<PendingSlot, 'endsAtMs' | 'counted'>

/**
 * The clock is rounded to this step, a power of two per millisecond, so that sums and differences of times and windows are
 * exact. Otherwise `(nowMs + windowMs) - nowMs` is sometimes slightly more than the window, and `Retry-After`, which is rounded
 * up, a second too long.
 */
const CLOCK_STEPS_IN_MS = 1024

/** Where the clients of a policy are counted. */
type Place = { readonly counts: MemoryCounts; readonly table: number; readonly refuses: boolean }

/**
 * Counts in this process: at most `maxKeys` clients of each algorithm. When it is full, the counter that ends first is evicted. A counter,
 * or a client of a sliding window with its share of times, takes at most 200 bytes of resident memory with an address as its
 * key. Decisions are synchronous; there is nothing to close.
 *
 * @param options.seed any integer that clients cannot know
 * @param options.now milliseconds of a monotonic clock
 * @param options.wallNow the time of day, in milliseconds since 1970
 * @param options.plans those that were set for clients
 */
export function createMemoryLimiter(options: {
  readonly maxKeys: number
  readonly seed: number
  readonly now: () => number
  readonly wallNow?: (() => number) | undefined
  readonly plans?: MemoryPlans
}): MemoryLimiter {
  const { plans } = options
  const now = (): number => Math.floor(options.now() * CLOCK_STEPS_IN_MS) / CLOCK_STEPS_IN_MS
  /** Created for the first policy that needs it, to save memory if none does. */
  const countsOf = new Map<Algorithm, MemoryCounts>()
  const allCounts: MemoryCounts[] = []
  /** Of policies that have been asked for since the table of limits changed. */
  const places = new Map<Policy, Place>()
  /** By `countedAs`. */
  const tableByCounts = new Map<string, number>()
  /** By table: of the policies that share it the one with the largest quota; undefined for one to be used again. */
  const policies: (Policy | undefined)[] = []

  function placeOf(policy: Policy): Place {
    return places.get(policy) ?? addPlace(policy)
  }

  function addPlace(policy: Policy): Place {
    const table = tableByCounts.get(countedAs(policy)) ?? addTable(policy)
    // No more is kept for the shared counters than the largest quota allows.
    if ((policies[table]?.quota ?? 0) < policy.quota) policies[table] = policy
    const place = { counts: findCounts(algorithmOf(policy)), table, refuses: refusesOver(policy) }
    places.set(policy, place)
    return place
  }

  function addTable(policy: Policy): number {
    const free = policies.indexOf(undefined)
    const table = free === -1 ? policies.length : free
    policies[table] = policy
    tableByCounts.set(countedAs(policy), table)
    return table
  }

  function findCounts(algorithm: Algorithm): MemoryCounts {
    const known = countsOf.get(algorithm)
    if (known) return known
    const counts = algorithm.createCounts(options)
    countsOf.set(algorithm, counts)
    allCounts.push(counts)
    return counts
  }

  function* useTable(next: readonly Policy[]): Steps<void> {
    const largest = new Map<string, Policy>()
    for (const policy of next) {
      const known = largest.get(countedAs(policy))
      if (!known || known.quota < policy.quota) largest.set(countedAs(policy), policy)
      yield
    }
    places.clear()
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
    const left = allCounts.map(({ slots }) => slots.dropTables(dropped))
    for (const [counts, table] of tableByCounts) {
      if (!dropped.has(table) || left.some((tables) => tables.has(table))) continue
      policies[table] = undefined
      tableByCounts.delete(counts)
    }
  }

  function findRefusing(charges: readonly Charge[], nowMs: number): Policy | undefined {
    for (const charge of charges) {
      const { policy } = charge
      const { counts, table, refuses } = placeOf(policy)
      if (refuses && counts.exceeds(table, charge, unitsOf(charge), nowMs)) return policy
    }
    return undefined
  }

  function decide(charges: readonly Charge[], pendingSync: boolean): Decision {
    const nowMs = now()
    for (const { slots } of allCounts) slots.reclaimInPassing(nowMs)
    const refusedBy = findRefusing(charges, nowMs)
    const isAllowed = refusedBy === undefined
    const states: PolicyState[] = []
    for (const charge of charges) {
      const { counts, table } = placeOf(charge.policy)
      states.push(counts.charge(table, charge, unitsOf(charge), nowMs, isAllowed, pendingSync))
    }
    return isAllowed ? { outcome: 'allowed', states } : { outcome: 'refused', refusedBy, states }
  }

  function readUse(algorithm: Algorithm, name: string): TableUse {
    const use = countsOf.get(algorithm)?.readUse()[name]
    return use ?? { size: 0, capacity: algorithm.memoryTables(options.maxKeys)[name] ?? 0, evictions: 0 }
  }

  return {
    decide: (charges) =>
      plans && plans.byClient.size > 0
        ? plans.decide(charges, (planned) => decide(planned, false))
        : decide(charges, false),
    decidePendingSync: (charges) => decide(charges, true),
    settle(reservation, costUnits) {
      const { charge, units } = reservation
      const isOver = countsInFlight(charge.policy)
      if (!isOver && units === costUnits) return
      const { counts, table } = placeOf(charge.policy)
      counts.giveBack(table, reservation, isOver ? units : units - costUnits, now())
    },
    addInFlight({ policy, partitionKey }) {
      const { counts, table } = placeOf(policy)
      counts.add?.(table, { policy, partitionKey })
    },
    removeInFlight(charge) {
      const { counts, table } = placeOf(charge.policy)
      counts.giveBack(table, { charge, units: 1, isLocal: false, ticket: 0 }, 1, now())
    },
    hasPending: () => allCounts.some(({ slots }) => slots.pendingSize > 0),
    takeBackPending(charge) {
      if (takesUnits(charge.policy)) return false
      const { counts, table } = placeOf(charge.policy)
      return counts.takeBackPending(table, charge, now())
    },
    takePending(limit) {
      const taken: PendingCharge[] = []
      let room = limit
      for (const counts of allCounts) {
        for (const { table, key, endsAtMs, counted } of counts.takePending(room, now())) {
          const policy = policies[table]
          if (policy) taken.push({ policy, partitionKey: key, endsAtMs, counted })
          room -= counted.length
        }
      }
      return taken
    },
    read(charge) {
      const { counts, table } = placeOf(charge.policy)
      return counts.read(table, charge, now())
    },
    forget(policyName, partitionKey) {
      for (const [table, policy] of policies.entries()) {
        if (!policy || (policyName !== undefined && policy.name !== policyName)) continue
        for (const { slots } of allCounts) slots.forget(table, partitionKey)
      }
    },
    useTable,
    tables: new Map(
      algorithms.flatMap((algorithm) =>
        Object.keys(algorithm.memoryTables(options.maxKeys)).map(
          (name) => [name, () => readUse(algorithm, name)] as const,
        ),
      ),
    ),
  }
}

/**
 * Policies of which this is the same are counted together: what a rule says of some clients only with what it says of the
 * others, and what it says now with what it said before its table was changed.
 */
function countedAs({ name, algorithm, calendar, windowMs, sharedWindowMs = windowMs }: Policy): string {
  return `${algorithm} ${calendar?.unit ?? sharedWindowMs} ${name}`
}

function unitsOf({ policy, units }: Charge): number {
  return units ?? (policy.cost ? reservedUnits(policy) : 1)
}
