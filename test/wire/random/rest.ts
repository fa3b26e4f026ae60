import { setTimeout as sleep } from 'node:timers/promises'
import { parseExposition, type Exposition } from '../../support/metrics/prometheus.ts'
import type { DrivenGateway } from './gateways.ts'

/** How long a gateway may take to come to rest, longer than it lingers on connections that it has ended. */
const maxMs = 10_000

/** Gauges that must be 0 when nothing is in flight. */
const gauges = {
  connections: (metrics) => metrics.value('sluice_connections'),
  tunnels: (metrics) => metrics.value('sluice_upgrades'),
  'requests that wait for a connection': (metrics) => entries(metrics, 'upstream-queue'),
  'uploads that wait for their turn': (metrics) => entries(metrics, 'upload-queue'),
} satisfies Record<string, (metrics: Exposition) => number>

export type Rest = {
  /** Activities that have not come to rest. */
  readonly faults: readonly string[]
  /** The number of connections to the backend in the pool. */
  readonly idle: number
  readonly openFiles: number
}

function entries(metrics: Exposition, table: string): number {
  return metrics.value('sluice_table_entries', { table })
}

/** Waits until nothing is in flight in a gateway any more. */
export async function untilAtRest(gateway: DrivenGateway, backendConnections: () => number): Promise<Rest> {
  const untilMs = performance.now() + maxMs
  for (;;) {
    const metrics = await readMetrics(gateway)
    const faults: string[] = []
    for (const [name, read] of Object.entries(gauges))
      if (read(metrics) !== 0) faults.push(`${read(metrics)} ${name} are left`)
    const idle = entries(metrics, 'upstream-connections')
    if (idle !== backendConnections())
      faults.push(`${idle} connections to the backend are counted, and ${backendConnections()} are open`)
    if (faults.length === 0 || performance.now() > untilMs) {
      const errors = metrics.samples.filter(({ name }) => name === 'sluice_uncaught_errors_total')
      for (const { labels, value } of errors)
        if (value > 0) faults.push(`${value} uncaught errors in the ${labels['place'] ?? ''}`)
      return { faults, idle, openFiles: metrics.value('sluice_process_open_fds') }
    }
    await sleep(20)
  }
}

async function readMetrics({ adminPort }: DrivenGateway): Promise<Exposition> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/metrics`)
  return parseExposition(await response.text())
}

/** Watches for lines that a running gateway must not write. @returns a function for those written since its last call */
export function watchOutput({ process }: DrivenGateway): (mayFail: boolean) => string[] {
  let read = process.stdout().length
  let complaints = 0
  return (mayFail) => {
    const stdout = process.stdout()
    const end = stdout.lastIndexOf('\n') + 1
    const faults = stdout
      .slice(read, end)
      .split('\n')
      .filter((line) => line !== '' && !isExplained(line, mayFail))
    read = end
    const stderr = process.stderr()
    if (stderr.length > complaints)
      faults.push(`on standard error: ${stderr.slice(complaints, complaints + 1_000)}`)
    complaints = stderr.length
    return faults
  }
}

/**
 * Whether a line is expected: a line at `info`, a failure at the backend if the plans include such failures, or a line about a body in
 * which rules of every kind find nothing.
 */
function isExplained(line: string, mayFail: boolean): boolean {
  try {
    const { level, requestId, msg } = JSON.parse(line) as { level?: string; requestId?: string; msg?: string }
    if (level === 'warn' && msg?.startsWith('cannot read ')) return true
    return level === 'info' || (mayFail && level === 'warn' && requestId !== undefined)
  } catch {
    return false
  }
}
