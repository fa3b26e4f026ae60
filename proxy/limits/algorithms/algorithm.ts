import type { AlgorithmRule } from './algorithm-rule.ts'
import type { MemoryCounts, MemoryOptions } from './memory-counts.ts'
import type { RedisCounts } from './redis-counts.ts'

/** A way of counting requests: everything that is particular to it. `registry.ts` has all of them. */
export type Algorithm = {
  /** The value of `Policy.algorithm` and of the setting `algorithm`. */
  readonly name: string
  /**
   * Whether a request counts while it is in flight, rather than in a window. It is settled when it is over, whatever it has cost, and
   * no header says when more is left.
   */
  readonly countsInFlight: boolean
  /** Whether the store always gets the units of a charge and gives a ticket, also under policies that reserve nothing. */
  readonly takesUnits: boolean
  /** The units available again after the `resetMs` of a state: the whole quota, or one unit. */
  readonly resets: 'all' | 'one'
  readonly rule: AlgorithmRule
  /** The tables that its counts in memory are shown as in the metrics, and how many entries each can have. */
  memoryTables(maxKeys: number): Readonly<Record<string, number>>
  /** Called once in a process that counts by this algorithm in its memory. */
  createCounts(options: MemoryOptions): MemoryCounts
  readonly redis: RedisCounts
}
