import type { Counters } from './counters.ts'
import { counter, gauge, histogram, single } from './metric.ts'
import type { Metric } from './prometheus.ts'

/** Returns the metrics of the shared counters. */
export function describeStore(counters: Counters): Metric[] {
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
      '1 while a circuit breaker for Redis is open and rules apply onStoreError',
      single(counters.openBreakers.size > 0 ? 1 : 0),
      'max',
    ),
    gauge(
      'sluice_store_node_breaker_open',
      '1 for each node of a Redis cluster whose circuit breaker is open',
      [...counters.openBreakers]
        .filter((node) => node !== '')
        .map((node) => ({ labels: { node }, value: 1 })),
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
