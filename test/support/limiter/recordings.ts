import { pino } from 'pino'
import type { LimiterTelemetry } from '../../../proxy/limits/store/create-limiter.ts'
import type { Log } from '../../../shared/log.ts'

export type LogLine = { readonly level: number; readonly msg: string; readonly reason?: string }

/** A log that keeps its lines for the test to read. */
export function recordLog(): { readonly log: Log; readonly lines: LogLine[] } {
  const lines: LogLine[] = []
  const log = pino(
    { level: 'info' },
    { write: (line: string) => void lines.push(JSON.parse(line) as LogLine) },
  )
  return { log, lines }
}

export type RecordedTelemetry = LimiterTelemetry & {
  answers: number
  failures: number
  evicted: number
  readonly breaker: ('closed' | 'open')[]
  /** The node of each change in `breaker`. */
  readonly breakerNodes: string[]
}

export function recordTelemetry(): RecordedTelemetry {
  const recorded: RecordedTelemetry = {
    answers: 0,
    failures: 0,
    evicted: 0,
    breaker: [],
    breakerNodes: [],
    storeAnswered: () => void (recorded.answers += 1),
    storeFailed: () => void (recorded.failures += 1),
    breakerChanged(state, node) {
      recorded.breaker.push(state)
      recorded.breakerNodes.push(node)
    },
    storeEvicted: (keys) => void (recorded.evicted = keys),
    leaseChanged: () => undefined,
    observeTable: () => undefined,
  }
  return recorded
}
