import { readdirSync, readFileSync } from 'node:fs'
import { parseExposition } from '../../support/prometheus.ts'

/** What a process takes of the machine, and Redis of keys, at one instant of a long run. */
export type Sample = {
  readonly atMs: number
  readonly residentBytes: number
  /** Of JavaScript's heap and of the buffers outside of it, with what is not collected yet. */
  readonly usedBytes: number
  readonly descriptors: number
  readonly keys: number
}

/** Resident memory and open file descriptors of a process, as Linux has them. */
export function readProcess(pid: number): Pick<Sample, 'residentBytes' | 'descriptors'> {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const resident = Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? NaN)
  return { residentBytes: resident * 1024, descriptors: readdirSync(`/proc/${pid}/fd`).length }
}

/** Reads the gateway's own metrics. */
export async function readUsedBytes(adminPort: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/metrics`)
  const metrics = parseExposition(await response.text())
  return (
    metrics.value('sluice_nodejs_heap_size_used_bytes') + metrics.value('sluice_nodejs_external_memory_bytes')
  )
}

/** The least of each quarter: of a heap, about what was left after collecting. */
export function leastOfQuarters(samples: readonly Sample[], of: (sample: Sample) => number): number[] {
  return quarters(samples).map((quarter) => Math.min(...quarter.map(of)))
}

/** The middle of the values of each quarter of the samples: what grows shows from the first to the last. */
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
