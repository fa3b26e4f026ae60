import { readdirSync, readFileSync } from 'node:fs'

/** What a process takes of the machine, and Redis of keys, at one instant of a long run. */
export type Sample = {
  readonly atMs: number
  readonly residentBytes: number
  readonly descriptors: number
  readonly keys: number
}

/** Resident memory and open file descriptors of a process, as Linux has them. */
export function readProcess(pid: number): Pick<Sample, 'residentBytes' | 'descriptors'> {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const resident = Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? NaN)
  return { residentBytes: resident * 1024, descriptors: readdirSync(`/proc/${pid}/fd`).length }
}

/** The middle of the values of each quarter of the samples: what grows shows from the first to the last. */
export function medianOfQuarters(samples: readonly Sample[], of: (sample: Sample) => number): number[] {
  return [0, 1, 2, 3].map((quarter) => {
    const from = Math.floor((samples.length * quarter) / 4)
    const to = Math.floor((samples.length * (quarter + 1)) / 4)
    const values = samples
      .slice(from, to)
      .map(of)
      .toSorted((a, b) => a - b)
    return values[Math.floor(values.length / 2)] ?? NaN
  })
}
