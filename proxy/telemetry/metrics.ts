import type { Policy } from '../policy.ts'
import { readActivity, type Activity } from './activity.ts'
import type { ListUse, Telemetry } from './telemetry.ts'
import {
  createCounters,
  createTelemetry,
  DEFAULT_UPSTREAM,
  type Counters,
  type UpstreamCounters,
} from './counters.ts'
import { decisionValues, usageValues } from './decision-values.ts'
import type { DurationHistogram } from './histogram.ts'
import type { Metric, MetricSnapshot, MetricValue } from './prometheus.ts'

/** The outcome of the last forwarded request; `unknown` before the first. */
export type UpstreamState = 'available' | 'unavailable' | 'unknown'

/** The table of limits in force, and how it was read. */
export type ConfigState = {
  /** A short SHA-256 of the table. */
  readonly hash: string
  /** Whether it was valid when it was last read. */
  readonly isLastRight: boolean
  /** The mistakes of the last read, each with its place, if it was not valid. */
  readonly mistakes?: readonly string[]
  /** When it was last valid, in milliseconds of the wall clock. */
  readonly lastRightAtMs: number
}

export type Metrics = {
  /** For the request path to report to. */
  readonly telemetry: Telemetry
  /** All metrics of this process now: those of the request path and those of Node. */
  takeSnapshot(): Promise<MetricSnapshot>
  /** The few of them that the operators' page reads twice a second. */
  readActivity(): Activity
  /** What the last forwarded request says of the backend. */
  upstreamState(): UpstreamState
}

/**
 * Counts for the request path, and names the counters. The names begin with `sluice_`, and those of Node are there without
 * it too; the reference is in `docs/operations.md`. Label values come from
 * the settings (names of policies and routes, the hash of the table) and from this program; nothing comes from requests.
 *
 * @param readNode the metrics of Node itself, from `watchProcess('sluice_')`
 */
export function createMetrics(options: {
  readonly policies: readonly Policy[]
  /** Whether the limits apply: not with `RATE_LIMITING_DISABLED=1`. */
  readonly limitsEnabled: boolean
  readonly version: string
  readonly readNode: () => Promise<MetricSnapshot>
  /** In the process that reads the settings. */
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
    gauge(
      'sluice_build_info',
      'Always 1; the version is in the label',
      by('version', { [version]: 1 }),
      'max',
    ),
  ]
}

/** The last two as Prometheus names its own. */
function describeConfig({ hash, isLastRight, lastRightAtMs }: ConfigState): Metric[] {
  return [
    gauge(
      'sluice_config_info',
      'Always 1; the hash of the table of limits in force is in the label',
      by('hash', { [hash]: 1 }),
      'max',
    ),
    gauge(
      'sluice_config_last_reload_successful',
      '1 if the settings were valid when they were last read, else 0',
      single(isLastRight ? 1 : 0),
      'max',
    ),
    gauge(
      'sluice_config_last_reload_success_timestamp_seconds',
      'Unix time of the last time that the settings were read and valid',
      single(lastRightAtMs / 1000),
      'max',
    ),
  ]
}

function describeRequests(counters: Counters): Metric[] {
  const [none = 0, ...classes] = counters.requests
  const byClass = Object.fromEntries(classes.map((count, index) => [`${index + 1}xx`, count]))
  return [
    counter(
      'sluice_requests_total',
      'Finished requests, by status class; none: the client disconnected before the response',
      by('class', { ...byClass, none }),
    ),
    histogram('sluice_request_duration_seconds', 'Time from the request headers to the end of the response', {
      labels: {},
      duration: counters.requestDuration,
    }),
    counter(
      'sluice_rejected_requests_total',
      'Malformed or oversized requests rejected before any rule applied, by reason',
      by('reason', counters.rejections),
    ),
    counter(
      'sluice_listed_requests_total',
      'Requests that an allowList kept a rule from, or that denyList or a ban refused, by list',
      by('list', counters.lists),
    ),
    counter(
      'sluice_decisions_total',
      'Rate limit decisions, by policy and outcome',
      decisionValues(counters),
    ),
    counter(
      'sluice_limited_requests_total',
      'Requests that a rule counted or refused, by policy and how much of the limit was used: within, near (over 80 %), over',
      usageValues(counters),
    ),
    histogram(
      'sluice_delay_seconds',
      'Time that requests over a limit waited for their turn (over: { delay }), by policy',
      ...Array.from(counters.delays, ([policy, duration]) => ({ labels: { policy }, duration })),
    ),
    counter(
      'sluice_unreadable_costs_total',
      'Responses that did not state the cost of their request (cost.settle), by policy and reason',
      byReason(counters.unreadableCosts),
    ),
    counter(
      'sluice_unread_reserves_total',
      'Requests that did not say how much to reserve (cost.reserve), by policy and reason',
      byReason(counters.unreadReserves),
    ),
    counter(
      'sluice_unread_keys_total',
      'Requests that were counted by address, since their body does not say for whom (key: body), by policy and reason',
      byReason(counters.unreadKeys),
    ),
    counter(
      'sluice_bans_total',
      'Clients banned by a rule (ban), by policy',
      Array.from(counters.bans, ([policy, value]) => ({ labels: { policy }, value })),
    ),
    counter(
      'sluice_devices_total',
      'Requests under rules with device, by policy and by whether their device is known for their account, and cookies issued',
      [...counters.devices].flatMap(([policy, counts]) =>
        Object.entries(counts).map(([event, value]) => ({ labels: { policy, event }, value })),
      ),
    ),
    counter(
      'sluice_plan_requests_total',
      'Requests under rules with plans, by policy and plan: none without a plan, unknown for one that the rule does not have',
      [...counters.plans].flatMap(([policy, counts]) =>
        Object.entries(counts).map(([plan, value]) => ({ labels: { policy, plan }, value })),
      ),
    ),
    counter(
      'sluice_leased_units_total',
      'Units of rules with lease: taken ahead from Redis, used by requests without asking it, returned unused',
      [...counters.leases].flatMap(([policy, counts]) =>
        Object.entries(counts).map(([change, value]) => ({ labels: { policy, change }, value })),
      ),
    ),
    counter('sluice_tokens_total', 'Tokens that rules count by, by outcome', by('outcome', counters.tokens)),
    counter(
      'sluice_key_set_loads_total',
      'Attempts to load the key set for tokens, by outcome',
      by('outcome', counters.keySets),
    ),
    gauge('sluice_connections', 'Open client connections', single(counters.connections)),
    counter(
      'sluice_refused_connections_total',
      'Client connections closed before their first request, by reason',
      by('reason', counters.refusedConnections),
    ),
    counter(
      'sluice_evicted_connections_total',
      'Client connections closed to make room for new ones, by state',
      by('state', counters.evictedConnections),
    ),
    gauge(
      'sluice_upgrades',
      'Open tunnels: WebSocket and the protocols of UPGRADE_PROTOCOLS',
      single(counters.upgrades),
    ),
  ]
}

function describeStore(counters: Counters): Metric[] {
  return [
    histogram(
      'sluice_store_duration_seconds',
      'Latency of Redis, or with several workers without Redis of the primary process',
      { labels: {}, duration: counters.storeDuration },
    ),
    counter(
      'sluice_store_errors_total',
      'Commands to Redis (or to the primary process) that failed or timed out',
      single(counters.storeFailures),
    ),
    counter('sluice_resets_total', 'Clients reset by an operator', single(counters.resets)),
    gauge(
      'sluice_store_breaker_open',
      '1 while the circuit breaker for Redis is open and rules apply onStoreError',
      single(counters.breakerOpen ? 1 : 0),
      'max',
    ),
    gauge(
      'sluice_store_evicted_keys',
      'Keys that Redis has evicted since its start, including those of other programs',
      single(counters.storeEvicted),
      'max',
    ),
  ]
}

/** Without those that nothing is sent to: where all backends are those of routes, there is no `default`. */
function usedUpstreams(counters: Counters): (readonly [string, UpstreamCounters])[] {
  const inUse = new Set(counters.servers().map(({ upstream }) => upstream))
  return [...counters.upstreams].filter(
    ([name, upstream]) => name !== DEFAULT_UPSTREAM || inUse.has(name) || hasCounted(upstream),
  )
}

function hasCounted({ state, failures }: UpstreamCounters): boolean {
  return state !== 'unknown' || Object.values(failures).some((count) => count > 0)
}

/** The state of `upstream`; without one, of the backends of routes: available as soon as one of them is. */
function readUpstreamState(counters: Counters): UpstreamState {
  const states = new Set(usedUpstreams(counters).map(([, { state }]) => state))
  const own = counters.upstreams.get(DEFAULT_UPSTREAM)?.state ?? 'unknown'
  if (own !== 'unknown') return own
  return states.has('available') ? 'available' : states.has('unavailable') ? 'unavailable' : 'unknown'
}

function describeUpstream(counters: Counters): Metric[] {
  return [
    histogram(
      'sluice_upstream_duration_seconds',
      'Time until the response headers from the backend arrived',
      ...usedUpstreams(counters).map(([upstream, { duration }]) => ({ labels: { upstream }, duration })),
    ),
    counter(
      'sluice_upstream_errors_total',
      'Requests that the backend did not answer, by kind of failure',
      usedUpstreams(counters).flatMap(([upstream, { failures }]) =>
        withUpstream(upstream, by('kind', failures)),
      ),
    ),
    gauge(
      'sluice_upstream_servers',
      'Servers of a backend, by state: available, ejected (requests failed), unhealthy (health checks failed)',
      counters.servers().flatMap(({ upstream, states }) => withUpstream(upstream, by('state', states))),
      'max',
    ),
    counter(
      'sluice_upstream_probes_total',
      'Health checks of the servers of a backend, by outcome',
      usedUpstreams(counters).flatMap(([upstream, { probes }]) =>
        probes ? withUpstream(upstream, by('outcome', probes)) : [],
      ),
    ),
  ]
}

function describeTables({ tables }: Counters): Metric[] {
  const uses = [...tables].map(([table, read]) => ({ table, ...read() }))
  const byTable = (field: 'size' | 'capacity' | 'evictions'): MetricValue[] =>
    uses.map((use) => ({ labels: { table: use.table }, value: use[field] }))
  return [
    gauge('sluice_table_entries', 'Entries in each queue, cache or table of bounded size', byTable('size')),
    gauge(
      'sluice_table_capacity',
      'Maximum entries of each queue, cache or table of bounded size',
      byTable('capacity'),
    ),
    counter(
      'sluice_table_evictions_total',
      'Entries evicted from each queue, cache or table to make room',
      byTable('evictions'),
    ),
  ]
}

/** Of several processes that read a list, those that read it worst. */
function describeLists(counters: Counters): Metric[] {
  const { denials, addressLists } = counters
  const lists = addressLists()
  const byList = (valueOf: (use: ListUse) => number): MetricValue[] =>
    lists.map((use) => ({ labels: { list: use.list }, value: valueOf(use) }))
  return [
    counter(
      'sluice_denied_requests_total',
      'Requests that a list refused before any rule applied, by list: denyList, a file of it, or crowdsec',
      by('list', Object.fromEntries(denials)),
    ),
    counter(
      'sluice_crowdsec_polls_total',
      'Polls of the local API of CrowdSec, by outcome',
      by('outcome', counters.crowdsecPolls),
    ),
    gauge(
      'sluice_crowdsec_last_success_timestamp_seconds',
      'Unix time of the last time that decisions of CrowdSec were read; 0 before',
      single(counters.crowdsecPolledAtMs / 1000),
      'max',
    ),
    gauge(
      'sluice_list_entries',
      'Entries of a list of addresses, by its file',
      byList(({ entries }) => entries),
      'min',
    ),
    gauge(
      'sluice_list_last_reload_successful',
      '1 if the list of addresses was valid when it was last read, else 0',
      byList(({ isLastRight }) => (isLastRight ? 1 : 0)),
      'min',
    ),
    gauge(
      'sluice_list_last_reload_success_timestamp_seconds',
      'Unix time of the last time that the list of addresses was read and valid',
      byList(({ lastRightAtMs }) => lastRightAtMs / 1000),
      'min',
    ),
  ]
}

function counter(name: string, help: string, values: MetricValue[]): Metric {
  return { name, help, type: 'counter', aggregator: 'sum', values }
}

function gauge(
  name: string,
  help: string,
  values: MetricValue[],
  aggregator: 'sum' | 'max' | 'min' = 'sum',
): Metric {
  return { name, help, type: 'gauge', aggregator, values }
}

function histogram(
  name: string,
  help: string,
  ...all: { readonly labels: MetricValue['labels']; readonly duration: DurationHistogram }[]
): Metric {
  const values = all.flatMap(({ labels, duration }) =>
    duration.values(name).map((value) => ({ ...value, labels: { ...labels, ...value.labels } })),
  )
  return { name, help, type: 'histogram', aggregator: 'sum', values }
}

function single(value: number): MetricValue[] {
  return [{ labels: {}, value }]
}

function withUpstream(upstream: string, values: readonly MetricValue[]): MetricValue[] {
  return values.map(({ labels, value }) => ({ labels: { upstream, ...labels }, value }))
}

/** One value for each policy and reason. */
function byReason(counted: ReadonlyMap<string, Readonly<Record<string, number>>>): MetricValue[] {
  return [...counted].flatMap(([policy, reasons]) =>
    by('reason', reasons).map(({ labels, value }) => ({ labels: { policy, ...labels }, value })),
  )
}

/** One value for each value of the label: `by('kind', { refused: 3, reset: 0 })`. */
function by(label: string, counted: Readonly<Record<string, number>>): MetricValue[] {
  return Object.entries(counted).map(([labelValue, value]) => ({ labels: { [label]: labelValue }, value }))
}
