import type { Counters } from './counters.ts'
import { by, counter, gauge, histogram, single } from './metric.ts'
import type { Metric } from './prometheus.ts'

/** Returns the metrics of requests. */
export function describeRequests(counters: Counters): Metric[] {
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
  ]
}

/** Returns the metrics of JSON Web Tokens and their keys. */
export function describeTokens(counters: Counters): Metric[] {
  return [
    counter('sluice_tokens_total', 'Tokens that rules count by, by outcome', by('outcome', counters.tokens)),
    counter(
      'sluice_key_set_loads_total',
      'Attempts to load the key set (JWKS) for tokens, by outcome',
      by('outcome', counters.keySets),
    ),
  ]
}

/** Returns the metrics of connections, including tunnels. */
export function describeConnections(counters: Counters): Metric[] {
  const { certificateExpiresAtMs } = counters
  return [
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
      'sluice_tls_certificate_expiry_timestamp_seconds',
      'Unix time when the TLS certificate in use expires',
      certificateExpiresAtMs === undefined ? [] : single(certificateExpiresAtMs / 1000),
      'min',
    ),
    gauge(
      'sluice_upgrades',
      'Open tunnels: WebSocket and the protocols of UPGRADE_PROTOCOLS',
      single(counters.upgrades),
    ),
  ]
}
