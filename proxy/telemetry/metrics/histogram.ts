import type { MetricValue } from './prometheus.ts'

/**
 * Counts durations in fixed buckets. Made for the request path, where prom-client's own histogram costs more than the rest of the telemetry
 * together, because it hashes labels and allocates on each observation.
 */
export type DurationHistogram = {
  /**
   * Counts a duration. Ignores values other than finite, non-negative milliseconds: one NaN or Infinity would spoil the sum permanently.
   */
  observe(durationMs: number): void
  /** Returns the number of durations. */
  count(): number
  /** Returns the values of a Prometheus histogram, in seconds: cumulative buckets, sum and count, named after `metricName`. */
  values(metricName: string): MetricValue[]
}

/** The buckets of requests, to clients and to backends. */
export const REQUEST_BOUNDS_MS = [
  1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000,
]

/** @param boundsMs the upper bounds of the buckets in milliseconds, ascending; a last bucket without a bound is added */
export function createDurationHistogram(boundsMs: readonly number[]): DurationHistogram {
  const bounds = Float64Array.from(boundsMs)
  const counts = new Float64Array(boundsMs.length + 1)
  let sumMs = 0

  return {
    observe(durationMs) {
      if (!(durationMs >= 0 && durationMs < Infinity)) return
      let index = 0
      while (durationMs > (bounds[index] ?? Infinity)) index++
      counts[index] = (counts[index] ?? 0) + 1
      sumMs += durationMs
    },

    count: () => counts.reduce((sum, inBucket) => sum + inBucket, 0),

    values(metricName) {
      const values: MetricValue[] = []
      let count = 0
      counts.forEach((inBucket, index) => {
        const boundMs = boundsMs[index]
        count += inBucket
        const le = boundMs === undefined ? '+Inf' : boundMs / 1000
        values.push({ metricName: `${metricName}_bucket`, labels: { le }, value: count })
      })
      values.push({ metricName: `${metricName}_sum`, labels: {}, value: sumMs / 1000 })
      values.push({ metricName: `${metricName}_count`, labels: {}, value: count })
      return values
    },
  }
}
