import type { FailureMetric, UpstreamTelemetry } from '../telemetry.ts'
import { createDurationHistogram, REQUEST_BOUNDS_MS, type DurationHistogram } from './histogram.ts'

/** The outcome of the last forwarded request; `unknown` before the first. */
export type UpstreamState = 'available' | 'unavailable' | 'unknown'

export type UpstreamCounters = {
  readonly failures: Record<FailureMetric, number>
  readonly duration: DurationHistogram
  /** Undefined before the first health check. */
  probes: { passed: number; failed: number } | undefined
  state: UpstreamState
}

/** The name of `upstream` among the names of routes. */
export const DEFAULT_UPSTREAM = 'default'

/** Creates the counters of one route before anything is counted. */
export function createUpstreamCounters(): UpstreamCounters {
  return {
    failures: { refused: 0, timeout: 0, reset: 0, protocol: 0, busy: 0, other: 0 },
    duration: createDurationHistogram(REQUEST_BOUNDS_MS),
    probes: undefined,
    state: 'unknown',
  }
}

/** Creates the telemetry for events of a backend, which change these counters. */
export function createUpstreamTelemetry(upstream: UpstreamCounters): UpstreamTelemetry {
  return {
    upstreamProbed(hasPassed) {
      upstream.probes ??= { passed: 0, failed: 0 }
      upstream.probes[hasPassed ? 'passed' : 'failed']++
    },
    upstreamAnswered(durationMs) {
      upstream.state = 'available'
      upstream.duration.observe(durationMs)
    },
    upstreamFailed(kind) {
      if (kind !== 'busy') upstream.state = 'unavailable'
      upstream.failures[kind]++
    },
  }
}
