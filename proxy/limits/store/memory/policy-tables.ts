import type { Steps } from '../../../../shared/steps.ts'
import { refusesOver, type Policy } from '../../../policy.ts'
import type { TableUse } from '../../../telemetry/telemetry.ts'
import type { Algorithm } from '../../algorithms/algorithm.ts'
import type { MemoryCounts, MemoryOptions } from '../../algorithms/memory-counts.ts'
import { algorithmOf } from '../../algorithms/registry.ts'

/** The table in which the clients of a policy are counted. */
export type Place = { readonly counts: MemoryCounts; readonly table: number; readonly refuses: boolean }

/**
 * The tables in which the clients of policies are counted. Policies that are counted together share a table, and keep it when the
 * table of limits changes.
 */
export class PolicyTables {
  readonly #options: MemoryOptions
  /** Counts are created for the first policy that needs them, to save memory if no policy does. */
  readonly #countsOf = new Map<Algorithm, MemoryCounts>()
  readonly #allCounts: MemoryCounts[] = []
  readonly #places = new Map<Policy, Place>()
  readonly #policies: (Policy | undefined)[] = []
  /** Keyed by the result of `countedAs`. */
  readonly #tableByCounts = new Map<string, number>()
  /** The counts of all algorithms that policies have needed. */
  readonly allCounts: readonly MemoryCounts[] = this.#allCounts
  /** The places of the policies that were used since the table of limits changed. */
  readonly places: ReadonlyMap<Policy, Place> = this.#places
  /** By table: the policy with the largest quota of all that share the table; undefined for a table that can be reused. */
  readonly policies: readonly (Policy | undefined)[] = this.#policies

  constructor(options: MemoryOptions) {
    this.#options = options
  }

  /** Adds the place of a policy that is not in `places` yet, and returns it. */
  addPlace(policy: Policy): Place {
    const table = this.#tableByCounts.get(countedAs(policy)) ?? this.#addTable(policy)
    // Pending counts are added to the shared counters under this policy, and its quota bounds how much the shared counters keep.
    if ((this.#policies[table]?.quota ?? 0) < policy.quota) this.#policies[table] = policy
    const place = { counts: this.#findCounts(algorithmOf(policy)), table, refuses: refusesOver(policy) }
    this.#places.set(policy, place)
    return place
  }

  /** Implements `MemoryLimiter.useTable`. */
  *change(next: readonly Policy[]): Steps<void> {
    const largest = new Map<string, Policy>()
    for (const policy of next) {
      const known = largest.get(countedAs(policy))
      if (!known || known.quota < policy.quota) largest.set(countedAs(policy), policy)
      yield
    }
    this.#places.clear()
    const dropped = new Set<number>()
    for (const [counts, table] of this.#tableByCounts) {
      const policy = largest.get(counts)
      if (policy) this.#policies[table] = policy
      else dropped.add(table)
    }
    if (dropped.size > 0) this.#drop(dropped)
  }

  /** Returns how full the table of this name is. Its algorithm may not be in use. */
  readUse(algorithm: Algorithm, name: string): TableUse {
    const use = this.#countsOf.get(algorithm)?.readUse()[name]
    const capacity = algorithm.memoryTables(this.#options.maxKeys)[name] ?? 0
    return use ?? { size: 0, capacity, evictions: 0 }
  }

  #addTable(policy: Policy): number {
    const free = this.#policies.indexOf(undefined)
    const table = free === -1 ? this.#policies.length : free
    this.#policies[table] = policy
    this.#tableByCounts.set(countedAs(policy), table)
    return table
  }

  #findCounts(algorithm: Algorithm): MemoryCounts {
    const known = this.#countsOf.get(algorithm)
    if (known) return known
    const counts = algorithm.createCounts(this.#options)
    this.#countsOf.set(algorithm, counts)
    this.#allCounts.push(counts)
    return counts
  }

  /** Drops any number of tables in one pass over all counters. */
  #drop(dropped: ReadonlySet<number>): void {
    const left = this.#allCounts.map(({ slots }) => slots.dropTables(dropped))
    for (const [counts, table] of this.#tableByCounts) {
      if (!dropped.has(table) || left.some((tables) => tables.has(table))) continue
      this.#policies[table] = undefined
      this.#tableByCounts.delete(counts)
    }
  }
}

/**
 * Returns a text that is the same for policies that are counted together: those of a rule and its overrides, and those of a rule before
 * and after a change of the table of limits.
 */
function countedAs({ name, algorithm, calendar, windowMs, sharedWindowMs = windowMs }: Policy): string {
  return `${algorithm} ${calendar?.unit ?? sharedWindowMs} ${name}`
}
