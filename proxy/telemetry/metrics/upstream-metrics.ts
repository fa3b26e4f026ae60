import type { Counters } from './counters.ts'
import { by, counter, gauge, histogram } from './metric.ts'
import type { Metric, MetricValue } from './prometheus.ts'
import { DEFAULT_UPSTREAM, type UpstreamCounters, type UpstreamState } from './upstream-counters.ts'

/** Returns the backends that requests are or were sent to. Leaves out `default` if all requests take routes. */
function usedUpstreams(counters: Counters): (readonly [string, UpstreamCounters])[] {
  const inUse = new Set(counters.servers().map(({ upstream }) => upstream))
  return [...counters.upstreams].filter(
    ([name, upstream]) => name !== DEFAULT_UPSTREAM || inUse.has(name) || hasCounted(upstream),
  )
}

function hasCounted({ state, failures }: UpstreamCounters): boolean {
  return state !== 'unknown' || Object.values(failures).some((count) => count > 0)
}

/** Returns the state of `upstream`. If it is unknown, returns the state of the backends of routes: available if one of them is. */
export function readUpstreamState(counters: Counters): UpstreamState {
  const states = new Set(usedUpstreams(counters).map(([, { state }]) => state))
  const own = counters.upstreams.get(DEFAULT_UPSTREAM)?.state ?? 'unknown'
  if (own !== 'unknown') return own
  return states.has('available') ? 'available' : states.has('unavailable') ? 'unavailable' : 'unknown'
}

/** Returns the metrics of backends, by route. Includes `default` only if requests can go there, or have gone there. */
export function describeUpstream(counters: Counters): Metric[] {
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

function withUpstream(upstream: string, values: readonly MetricValue[]): MetricValue[] {
  return values.map(({ labels, value }) => ({ labels: { upstream, ...labels }, value }))
}
