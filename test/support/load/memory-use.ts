import { readFileSync } from 'node:fs'
import { parseExposition } from '../metrics/prometheus.ts'

/** Resident memory of a process, as Linux reports it. It goes up and down as allocators take and return memory. */
export function readResidentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return 1024 * Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? NaN)
}

/**
 * How much of the JavaScript heap and of external buffers a gateway uses, including uncollected garbage, by its own metrics. The smallest
 * of several readings is close to the memory that is really held.
 */
export async function readUsedBytes(adminPort: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/metrics`)
  const metrics = parseExposition(await response.text())
  return (
    metrics.value('sluice_nodejs_heap_size_used_bytes') + metrics.value('sluice_nodejs_external_memory_bytes')
  )
}
