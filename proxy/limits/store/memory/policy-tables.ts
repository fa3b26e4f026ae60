import type { Steps } from '../../../../shared/steps.ts'
import { refusesOver, type Policy } from '../../../policy.ts'
import type { TableUse } from '../../../telemetry/telemetry.ts'
import type { Algorithm } from '../../algorithms/algorithm.ts'
import type { MemoryCounts, MemoryOptions } from '../../algorithms/memory-counts.ts'
import { algorithmOf } from '../../algorithms/registry.ts'

/** The table in which the clients of a policy are counted. */
export type Place = { readonly counts: MemoryCounts; readonly table: number; readonly refuses: boolean }

/**
 * The tables in which the clients of policies are counted: policies that are counted together share one, and go on in it when the
 * table of limits changes.
 */
export class PolicyTables {
  readonly #options: MemoryOptions
  /** Created for the first policy that needs it, to save memory if none does. */
  readonly #countsOf = new Map<Algorithm, MemoryCounts>()
  readonly #allCounts: MemoryCounts[] = []
  readonly #places = new Map<Policy, Place>()
  readonly #policies: (Policy | undefined)[] = []
  /** By the result of `countedAs`. */
  readonly #tableByCounts = new Map<string, number>()
  /** The counts of all algorithms that policies have needed. */
  readonly allCounts: readonly MemoryCounts[] = this.#allCounts
  /** The tables of the policies that have been asked for since the table of limits changed. */
  readonly places: ReadonlyMap<Policy, Place> = this.#places
  /** By table: of the policies that share it, the one with the largest quota; undefined for a table that can be reused. */
  readonly policies: readonly (Policy | undefined)[] = this.#policies

  constructor(options: MemoryOptions) {
    this.#options = options
  }

  /** The place of a policy that is not in `places` yet. */
  addPlace(policy: Policy): Place {
    const table = this.#tableByCounts.get(countedAs(policy)) ?? this.#addTable(policy)
    // No more is kept for the shared counters than the largest quota allows.
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

  /** How full the table of this name is, of an algorithm that may not be in use. */
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

  /** Drops tables in one pass over all counters, however many they are. */
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
 * A text that policies share if they are counted together: those of a rule's overrides with the rule, and those of a rule with its
 * earlier ones, before the table was changed.
 */
function countedAs({ name, algorithm, calendar, windowMs, sharedWindowMs = windowMs }: Policy): string {
  return `${algorithm} ${calendar?.unit ?? sharedWindowMs} ${name}`
}
