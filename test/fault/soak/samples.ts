import { readdirSync } from 'node:fs'
import { readResidentBytes } from '../../support/load/memory-use.ts'

/** The resources of a process, and the number of Redis keys, at one instant of a long run. */
export type Sample = {
  readonly atMs: number
  readonly residentBytes: number
  /** The bytes of JavaScript's heap and of the buffers outside of it, with uncollected garbage. */
  readonly usedBytes: number
  readonly descriptors: number
  readonly keys: number
}

/** Resident memory and open file descriptors of a process, as Linux reports them. */
export function readProcess(pid: number): Pick<Sample, 'residentBytes' | 'descriptors'> {
  return { residentBytes: readResidentBytes(pid), descriptors: readdirSync(`/proc/${pid}/fd`).length }
}

/** The minimum of each quarter. For a heap, that is about its size after a garbage collection. */
export function leastOfQuarters(samples: readonly Sample[], of: (sample: Sample) => number): number[] {
  return quarters(samples).map((quarter) => Math.min(...quarter.map(of)))
}

/** The median of each quarter of the samples: growth shows from the first to the last. */
export function medianOfQuarters(samples: readonly Sample[], of: (sample: Sample) => number): number[] {
  return quarters(samples).map((quarter) => {
    const values = quarter.map(of).toSorted((a, b) => a - b)
    return values[Math.floor(values.length / 2)] ?? NaN
  })
}

function quarters(samples: readonly Sample[]): Sample[][] {
  return [0, 1, 2, 3].map((quarter) =>
    samples.slice(
      Math.floor((samples.length * quarter) / 4),
      Math.floor((samples.length * (quarter + 1)) / 4),
    ),
  )
}
