import type { Steps } from '../../../../shared/steps.ts'
import type { Policy } from '../../../policy.ts'
import type { TableUse } from '../../../telemetry/telemetry.ts'
import type { CounterReading, MemoryOptions } from '../../algorithms/memory-counts.ts'
import { algorithms, countsInFlight, isReserved, takesUnits } from '../../algorithms/registry.ts'
import type { PendingSlot } from '../../algorithms/slots/slot-pool.ts'
import { unitsOf, type Charge, type Decision, type PolicyState, type Reservation } from '../../limiter.ts'
import type { MemoryPlans } from '../../plans/stored-plans.ts'
import { PolicyTables, type Place } from './policy-tables.ts'

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
 */
export class MemoryLimiter {
  /** The tables of all algorithms, by their names, and how full each is now. */
  readonly tables: ReadonlyMap<string, () => TableUse>
  readonly #tables: PolicyTables
  readonly #plans: MemoryPlans | undefined
  readonly #now: () => number

  /**
   * @param options.now milliseconds of a monotonic clock
   * @param options.plans the plans that were set for clients
   */
  constructor(options: MemoryOptions & { readonly now: () => number; readonly plans?: MemoryPlans }) {
    const tables = new PolicyTables(options)
    this.tables = usesByName(tables, options.maxKeys)
    this.#tables = tables
    this.#plans = options.plans
    this.#now = () => Math.floor(options.now() * CLOCK_STEPS_IN_MS) / CLOCK_STEPS_IN_MS
  }

  /** Does what `Limiter.decide` does, always synchronously. */
  readonly decide = (charges: readonly Charge[]): Decision =>
    this.#plans && this.#plans.byClient.size > 0
      ? this.#plans.decide(charges, (planned) => this.#decide(planned, false))
      : this.#decide(charges, false)

  /** Does what `decide` does, and marks what it counts as pending sync with the shared counters. */
  readonly decidePendingSync = (charges: readonly Charge[]): Decision =>
    dropUnsettledReservations(this.#decide(charges, true))

  /** Does what `decidePendingSync` does, but all states have reservations, so that the counted units can be given back. */
  readonly reservePendingSync = (charges: readonly Charge[]): Decision => this.#decide(charges, true)

  /** Implements `Limiter.settle`. Counts that `takePending` has returned stay counted. */
  settle(reservation: Reservation, costUnits: number): void {
    const { charge, units } = reservation
    const holdsInFlight = countsInFlight(charge.policy)
    if (!holdsInFlight && units === costUnits) return
    const { counts, table } = this.#placeOf(charge.policy)
    counts.giveBack(table, reservation, holdsInFlight ? units : units - costUnits, this.#now())
  }

  /** Counts a request in flight that the shared counters have allowed, so that it is known while they are unavailable. */
  addInFlight({ policy, partitionKey }: Charge): void {
    const { counts, table } = this.#placeOf(policy)
    counts.add?.(table, { policy, partitionKey })
  }

  removeInFlight(charge: Charge): void {
    const { counts, table } = this.#placeOf(charge.policy)
    counts.giveBack(table, { charge, units: 1, isLocal: false, ticket: 0 }, 1, this.#now())
  }

  /**
   * Returns the counts pending sync with the shared counters, each once: at most `limit` counters and times of sliding windows.
   * Returns fewer only if there are no more.
   *
   * @param isAsked whether the counts of a shard are returned; without it, the counts of all shards are
   */
  takePending(limit: number, isAsked?: (shard: number) => boolean): PendingCharge[] {
    const nowMs = this.#now()
    const taken: PendingCharge[] = []
    let room = limit
    for (const counts of this.#tables.allCounts) {
      for (const { table, key, endsAtMs, counted } of counts.takePending(room, nowMs, isAsked)) {
        const policy = this.#tables.policies[table]
        if (policy) taken.push({ policy, partitionKey: key, endsAtMs, counted })
        room -= counted.length
      }
    }
    return taken
  }

  /** @param isAsked whether to look for counts of a shard; without it, all shards are searched */
  hasPending(isAsked?: (shard: number) => boolean): boolean {
    return this.#tables.allCounts.some(({ slots }) =>
      isAsked ? Iterator.from(slots.pendingShards()).some(isAsked) : slots.pendingSize > 0,
    )
  }

  /** The shards with counts pending sync. */
  pendingShards(): ReadonlySet<number> {
    return new Set(this.#tables.allCounts.flatMap(({ slots }) => [...slots.pendingShards()]))
  }

  /**
   * Removes one request of the client from the pending sync, because the shared counters have it already. Returns false if the request
   * was handed out, or if its cost may still change.
   */
  takeBackPending(charge: Charge): boolean {
    if (takesUnits(charge.policy)) return false
    const { counts, table } = this.#placeOf(charge.policy)
    return counts.takeBackPending(table, charge, this.#now())
  }

  /** Reads the count of a client; counts nothing. */
  read(charge: Charge): CounterReading {
    const { counts, table } = this.#placeOf(charge.policy)
    return counts.read(table, charge, this.#now())
  }

  /** Forgets the counts of a client under the policy of this name, or under all policies, but not its requests in flight. */
  forget(policyName: string | undefined, partitionKey: string): void {
    for (const [table, policy] of this.#tables.policies.entries()) {
      if (!policy || (policyName !== undefined && policy.name !== policyName)) continue
      for (const { slots } of this.#tables.allCounts) slots.forget(table, partitionKey)
    }
  }

  /**
   * Applies a change of the table of limits: frees the counts of policies whose name, window and algorithm are not in the new table, except
   * counts pending sync with the shared counters.
   *
   * @param policies the policies of all rules and their overrides
   */
  useTable(policies: readonly Policy[]): Steps<void> {
    return this.#tables.change(policies)
  }

  /** @param isLocal whether the counted units are pending sync with the shared counters */
  #decide(charges: readonly Charge[], isLocal: boolean): Decision {
    const nowMs = this.#now()
    for (const { slots } of this.#tables.allCounts) slots.reclaimInPassing(nowMs)
    const refusedBy = this.#findRefusing(charges, nowMs)
    const states: PolicyState[] = []
    for (const charge of charges) {
      const { counts, table } = this.#placeOf(charge.policy)
      const units = takenUnits(charge)
      states.push(
        refusedBy
          ? counts.peek(table, charge, units, nowMs)
          : counts.charge(table, charge, units, nowMs, isLocal),
      )
    }
    return refusedBy ? { outcome: 'refused', refusedBy, states } : { outcome: 'allowed', states }
  }

  #findRefusing(charges: readonly Charge[], nowMs: number): Policy | undefined {
    for (const charge of charges) {
      const { policy } = charge
      const { counts, table, refuses } = this.#placeOf(policy)
      if (refuses && counts.exceeds(table, charge, takenUnits(charge), nowMs)) return policy
    }
    return undefined
  }

  #placeOf(policy: Policy): Place {
    return this.#tables.places.get(policy) ?? this.#tables.addPlace(policy)
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

function usesByName(tables: PolicyTables, maxKeys: number): MemoryLimiter['tables'] {
  return new Map(
    algorithms.flatMap((algorithm) =>
      Object.keys(algorithm.memoryTables(maxKeys)).map(
        (name) => [name, () => tables.readUse(algorithm, name)] as const,
      ),
    ),
  )
}

/** Most rules have no costs. */
function takenUnits(charge: Charge): number {
  return charge.units === undefined && !charge.policy.cost ? 1 : unitsOf(charge)
}
