import type { MemoryCounts, MemoryOptions } from './memory-counts.ts'

/** A way of counting requests: everything that is particular to it. `registry.ts` has all of them. */
export type Algorithm = {
  /** As `Policy.algorithm` and the setting `algorithm` have it. */
  readonly name: string
  /** The tables that its counts in memory are shown as in the metrics, and how many entries each can have. */
  memoryTables(maxKeys: number): Readonly<Record<string, number>>
  /** Called once in a process that counts by this algorithm in its memory. */
  createCounts(options: MemoryOptions): MemoryCounts
}
