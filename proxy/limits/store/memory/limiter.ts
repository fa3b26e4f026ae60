import type { Steps } from '../../../../shared/steps.ts'
import type { Policy } from '../../../policy.ts'
import type { TableUse } from '../../../telemetry/telemetry.ts'
import type { CounterReading, MemoryOptions } from '../../algorithms/memory-counts.ts'
import { algorithms, countsInFlight, isReserved, takesUnits } from '../../algorithms/registry.ts'
import type { PendingSlot } from '../../algorithms/slots/slot-pool.ts'
import { unitsOf, type Charge, type Decision, type PolicyState, type Reservation } from '../../limiter.ts'
import type { MemoryPlans } from '../../plans/stored-plans.ts'
import { PolicyTables, type Place } from './policy-tables.ts'

export type MemoryLimiter = {
  /** Does what `Limiter.decide` does, always synchronously. */
  decide(charges: readonly Charge[]): Decision
  /** Does what `decide` does, and marks what it counts as pending sync with the shared counters. */
  readonly decidePendingSync: (charges: readonly Charge[]) => Decision
  /** Does what `decidePendingSync` does, but all states have reservations, so that the counted units can be given back. */
  readonly reservePendingSync: (charges: readonly Charge[]) => Decision
  /** Implements `Limiter.settle`. Counts that `takePending` has returned stay counted. */
  settle(reservation: Reservation, costUnits: number): void
  /** Counts a request in flight that the shared counters have allowed, so that it is known while they are unavailable. */
  addInFlight(charge: Charge): void
  removeInFlight(charge: Charge): void
  /**
   * Returns the counts pending sync with the shared counters, each once: at most `limit` counters and times of sliding windows.
   * Returns fewer only if there are no more.
   *
   * @param isAsked whether the counts of a shard are returned; without it, the counts of all shards are
   */
  takePending(limit: number, isAsked?: (shard: number) => boolean): PendingCharge[]
  /** @param isAsked whether to look for counts of a shard; without it, all shards are searched */
  hasPending(isAsked?: (shard: number) => boolean): boolean
  /** The shards with counts pending sync. */
  pendingShards(): ReadonlySet<number>
  /**
   * Removes one request of the client from the pending sync, because the shared counters have it already. Returns false if the request
   * was handed out, or if its cost may still change.
   */
  takeBackPending(charge: Charge): boolean
  /** Reads the count of a client; counts nothing. */
  read(charge: Charge): CounterReading
  /** Forgets the counts of a client under the policy of this name, or under all policies, but not its requests in flight. */
  forget(policyName: string | undefined, partitionKey: string): void
  /**
   * Applies a change of the table of limits: frees the counts of policies whose name, window and algorithm are not in the new table, except
   * counts pending sync with the shared counters.
   *
   * @param policies the policies of all rules and their overrides
   */
  useTable(policies: readonly Policy[]): Steps<void>
  /** The tables of all algorithms, by their names, and how full each is now. */
  readonly tables: ReadonlyMap<string, () => TableUse>
}

/** Requests of one client under one policy, admitted without the shared counters. They count until `endsAtMs` on the limiter's clock. */
export type PendingCharge = Charge & Pick<PendingSlot, 'endsAtMs' | 'counted'>

/**
 * The clock is rounded to this number of steps in a millisecond, a power of two, so that sums and differences of times and windows
 * are exact. Otherwise, `(nowMs + windowMs) - nowMs` would sometimes be slightly more than the window, and `Retry-After`, which is
 * rounded up, a second too long.
 */
const CLOCK_STEPS_IN_MS = 1024

/**
 * Counts at most `maxKeys` clients of each algorithm in this process. When an algorithm's table is full, the policy with the most counters
 * loses the counter that ends first. With an address as its key, a counter takes at most 200 bytes of resident memory, and so does a client
 * of a sliding window with its share of times. Decisions are synchronous; there is nothing to close.
 *
 * @param options.now milliseconds of a monotonic clock
 * @param options.plans the plans that were set for clients
 */
export function createMemoryLimiter(
  options: MemoryOptions & { readonly now: () => number; readonly plans?: MemoryPlans },
): MemoryLimiter {
  const { plans } = options
  const tables = new PolicyTables(options)
  const now = (): number => Math.floor(options.now() * CLOCK_STEPS_IN_MS) / CLOCK_STEPS_IN_MS
  return {
    decide: (charges) =>
      plans && plans.byClient.size > 0
        ? plans.decide(charges, (planned) => decide(tables, planned, now(), false))
        : decide(tables, charges, now(), false),
    decidePendingSync: (charges) => dropUnsettledReservations(decide(tables, charges, now(), true)),
    reservePendingSync: (charges) => decide(tables, charges, now(), true),
    settle: (reservation, costUnits) => settle(tables, reservation, costUnits, now()),
    addInFlight({ policy, partitionKey }) {
      const { counts, table } = placeOf(tables, policy)
      counts.add?.(table, { policy, partitionKey })
    },
    removeInFlight(charge) {
      const { counts, table } = placeOf(tables, charge.policy)
      counts.giveBack(table, { charge, units: 1, isLocal: false, ticket: 0 }, 1, now())
    },
    hasPending: (isAsked) => hasPending(tables, isAsked),
    takeBackPending(charge) {
      if (takesUnits(charge.policy)) return false
      const { counts, table } = placeOf(tables, charge.policy)
      return counts.takeBackPending(table, charge, now())
    },
    pendingShards() {
      return new Set(tables.allCounts.flatMap(({ slots }) => [...slots.pendingShards()]))
    },
    takePending: (limit, isAsked) => takePending(tables, limit, now(), isAsked),
    read(charge) {
      const { counts, table } = placeOf(tables, charge.policy)
      return counts.read(table, charge, now())
    },
    forget: (policyName, partitionKey) => forget(tables, policyName, partitionKey),
    useTable: (policies) => tables.change(policies),
    tables: usesByName(tables, options.maxKeys),
  }
}

/** Drops reservations under policies whose reservations are never settled. */
export function dropUnsettledReservations(decision: Decision): Decision {
  if (decision.outcome !== 'allowed') return decision
  return {
    ...decision,
    states: decision.states.map(({ reservation, ...state }) =>
      reservation && isReserved(state.policy) ? { ...state, reservation } : state,
    ),
  }
}

function placeOf(tables: PolicyTables, policy: Policy): Place {
  return tables.places.get(policy) ?? tables.addPlace(policy)
}

function decide(tables: PolicyTables, charges: readonly Charge[], nowMs: number, isLocal: boolean): Decision {
  for (const { slots } of tables.allCounts) slots.reclaimInPassing(nowMs)
  const refusedBy = findRefusing(tables, charges, nowMs)
  const states: PolicyState[] = []
  for (const charge of charges) {
    const { counts, table } = placeOf(tables, charge.policy)
    const units = takenUnits(charge)
    states.push(
      refusedBy
        ? counts.peek(table, charge, units, nowMs)
        : counts.charge(table, charge, units, nowMs, isLocal),
    )
  }
  return refusedBy ? { outcome: 'refused', refusedBy, states } : { outcome: 'allowed', states }
}

function findRefusing(tables: PolicyTables, charges: readonly Charge[], nowMs: number): Policy | undefined {
  for (const charge of charges) {
    const { policy } = charge
    const { counts, table, refuses } = placeOf(tables, policy)
    if (refuses && counts.exceeds(table, charge, takenUnits(charge), nowMs)) return policy
  }
  return undefined
}

function settle(tables: PolicyTables, reservation: Reservation, costUnits: number, nowMs: number): void {
  const { charge, units } = reservation
  const holdsInFlight = countsInFlight(charge.policy)
  if (!holdsInFlight && units === costUnits) return
  const { counts, table } = placeOf(tables, charge.policy)
  counts.giveBack(table, reservation, holdsInFlight ? units : units - costUnits, nowMs)
}

function forget(tables: PolicyTables, policyName: string | undefined, partitionKey: string): void {
  for (const [table, policy] of tables.policies.entries()) {
    if (!policy || (policyName !== undefined && policy.name !== policyName)) continue
    for (const { slots } of tables.allCounts) slots.forget(table, partitionKey)
  }
}

function usesByName(tables: PolicyTables, maxKeys: number): MemoryLimiter['tables'] {
  return new Map(
    algorithms.flatMap((algorithm) =>
      Object.keys(algorithm.memoryTables(maxKeys)).map(
        (name) => [name, () => tables.readUse(algorithm, name)] as const,
      ),
    ),
  )
}

function hasPending({ allCounts }: PolicyTables, isAsked: ((shard: number) => boolean) | undefined): boolean {
  return allCounts.some(({ slots }) =>
    isAsked ? Iterator.from(slots.pendingShards()).some(isAsked) : slots.pendingSize > 0,
  )
}

function takePending(
  tables: PolicyTables,
  limit: number,
  nowMs: number,
  isAsked: ((shard: number) => boolean) | undefined,
): PendingCharge[] {
  const taken: PendingCharge[] = []
  let room = limit
  for (const counts of tables.allCounts) {
    for (const { table, key, endsAtMs, counted } of counts.takePending(room, nowMs, isAsked)) {
      const policy = tables.policies[table]
      if (policy) taken.push({ policy, partitionKey: key, endsAtMs, counted })
      room -= counted.length
    }
  }
  return taken
}

/** Most rules have no costs. */
function takenUnits(charge: Charge): number {
  return charge.units === undefined && !charge.policy.cost ? 1 : unitsOf(charge)
}
