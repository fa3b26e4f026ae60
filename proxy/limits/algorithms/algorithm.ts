import type { Policy } from '../../policy.ts'
import type { AlgorithmRule } from './algorithm-rule.ts'
import type { MemoryCounts, MemoryOptions } from './memory-counts.ts'
import type { RedisCounts } from './redis-counts.ts'

/** A way of counting requests, with everything that is specific to it. `registry.ts` lists all algorithms. */
export type Algorithm = {
  /** The value of `Policy.algorithm` and of the setting `algorithm`. */
  readonly name: string
  /**
   * Whether a request counts while it is in flight, rather than in a window. Such a request is settled when it ends, regardless of its
   * cost, and no header says when more quota becomes available.
   */
  readonly countsInFlight: boolean
  /** Whether the store always gets the units of a charge and returns a ticket, even under policies that reserve nothing. */
  readonly takesUnits: boolean
  /** The units available again after the `resetMs` of a state: the whole quota, or one unit. */
  readonly resets: 'all' | 'one'
  readonly rule: AlgorithmRule
  /** Implements `stateWithout`. Without this function, more units are available at the same time as before. */
  stateWithout?(policy: Policy, units: number, state: CountedState): CountedState
  /** The tables in which metrics show the algorithm's counts in memory, and the maximum number of entries of each. */
  memoryTables(maxKeys: number): Readonly<Record<string, number>>
  /** Called once in each process that counts with this algorithm in memory. */
  createCounts(options: MemoryOptions): MemoryCounts
  readonly redis: RedisCounts
}

/** The remaining quota, and the milliseconds until more units are available. */
export type CountedState = { readonly remaining: number; readonly resetMs: number }
