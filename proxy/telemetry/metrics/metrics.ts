import type { Policy } from '../../policy.ts'
import type { Telemetry } from '../telemetry.ts'
import { readActivity, type Activity } from './activity.ts'
import { createCounters, createTelemetry, type Counters } from './counters.ts'
import { by, counter, gauge, single } from './metric.ts'
import { describePolicies } from './policy-metrics.ts'
import type { Metric, MetricSnapshot } from './prometheus.ts'
import { describeConnections, describeRequests, describeTokens } from './request-metrics.ts'
import { describeStore } from './store-metrics.ts'
import { describeLists, describeTables } from './table-metrics.ts'
import type { UpstreamState } from './upstream-counters.ts'
import { describeUpstream, readUpstreamState } from './upstream-metrics.ts'

/** The state of the table of limits and of its last read. */
export type ConfigState = {
  /** A short SHA-256 of the table. */
  readonly hash: string
  /** Whether the settings were valid, and could be applied, when they were last read. */
  readonly lastReadSucceeded: boolean
  /** The mistakes of the last read, each with its place; missing if it was successful. */
  readonly mistakes?: readonly string[]
  /** The time of the last successful read, in milliseconds of the wall clock. */
  readonly lastSuccessAtMs: number
}

export type Metrics = {
  /** The telemetry that the request path reports to. */
  readonly telemetry: Telemetry
  /** Takes the metrics of this process: those of the request path and those of Node. */
  takeSnapshot(): Promise<MetricSnapshot>
  /** Reads the few metrics that the operators' page needs twice a second. */
  readActivity(): Activity
  /** Returns the state of the backend after the last forwarded request. */
  upstreamState(): UpstreamState
}

/**
 * Creates the counters of the request path and their metrics. All names begin with `sluice_`; Node's metrics also appear without this
 * prefix. The reference is in `docs/operations.md`. Label values come from the settings (policies, routes, plans, the hash of the table),
 * from Redis (nodes of a cluster) and from this program, never from requests.
 *
 * @param readNode reads the metrics of Node itself: `watchProcess('sluice_')`
 */
export function createMetrics(options: {
  readonly policies: readonly Policy[]
  /** Whether the limits apply; false with `RATE_LIMITING_DISABLED=1`. */
  readonly limitsEnabled: boolean
  readonly version: string
  readonly readNode: () => Promise<MetricSnapshot>
  /** Set in the process that reads the settings. */
  readonly readConfig?: () => ConfigState
}): Metrics {
  const counters = createCounters(options.policies)
  return {
    telemetry: createTelemetry(counters),
    takeSnapshot: async () => [
      ...describe(counters, options),
      ...(options.readConfig ? describeConfig(options.readConfig()) : []),
      ...(await options.readNode()),
    ],
    readActivity: () => readActivity(counters),
    upstreamState: () => readUpstreamState(counters),
  }
}

function describe(
  counters: Counters,
  { limitsEnabled, version }: { readonly limitsEnabled: boolean; readonly version: string },
): Metric[] {
  return [
    ...describeRequests(counters),
    ...describePolicies(counters.policies),
    ...describeTokens(counters),
    ...describeConnections(counters),
    ...describeStore(counters),
    ...describeUpstream(counters),
    ...describeTables(counters),
    ...describeLists(counters),
    counter(
      'sluice_uncaught_errors_total',
      'Uncaught exceptions (bugs), by place',
      by('place', counters.errors),
    ),
    gauge(
      'sluice_limits_enabled',
      '1 if rate limiting is on, 0 with RATE_LIMITING_DISABLED=1',
      single(limitsEnabled ? 1 : 0),
      'max',
    ),
    gauge('sluice_processes', 'Number of processes included in these metrics', single(1)),
    describeUnresponsiveWorkers(0),
    gauge(
      'sluice_build_info',
      'Always 1; the version is in the label',
      by('version', { [version]: 1 }),
      'max',
    ),
  ]
}

/** The value of a process itself is 0; the primary process adds those that did not answer it. */
export function describeUnresponsiveWorkers(count: number): Metric {
  const help =
    'Number of worker processes that did not answer, so that their values in these metrics are older'
  return gauge('sluice_unresponsive_workers', help, single(count))
}

/** The last two metrics are named like those of Prometheus itself. */
function describeConfig({ hash, lastReadSucceeded, lastSuccessAtMs }: ConfigState): Metric[] {
  return [
    gauge(
      'sluice_config_info',
      'Always 1; the hash of the current table of limits is in the label',
      by('hash', { [hash]: 1 }),
      'max',
    ),
    gauge(
      'sluice_config_last_reload_successful',
      '1 if the settings were valid when they were last read, else 0',
      single(lastReadSucceeded ? 1 : 0),
      'max',
    ),
    gauge(
      'sluice_config_last_reload_success_timestamp_seconds',
      'Unix time of the last time that the settings were read and valid',
      single(lastSuccessAtMs / 1000),
      'max',
    ),
  ]
}
