import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client'

/** A value of a metric. `metricName` is set if it differs from the name of the metric, as for the parts of a histogram. */
export type MetricValue = {
  readonly metricName?: string
  readonly labels: Readonly<Partial<Record<string, string | number>>>
  readonly value: number
}

/** A metric with its values at one instant: plain data, which a worker can send to its primary process. */
export type Metric = {
  readonly name: string
  readonly help: string
  readonly type: string
  /** How to combine the values of several processes. */
  readonly aggregator: 'sum' | 'average' | 'min' | 'max' | 'first' | 'omit'
  readonly values: readonly MetricValue[]
}

/** The metrics of one process at one instant. */
export type MetricSnapshot = readonly Metric[]

export const METRICS_CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE

/**
 * The registry of this process. Its observers cannot be removed, and each further set would cost time in every turn of the event loop and
 * every garbage collection.
 */
let watched: Registry | undefined

/**
 * Watches this process from the first call on: CPU, memory, event loop, garbage collection, handles. All gateways in the process read the
 * same values.
 *
 * @param prefix the prefix of a second set of names for the same values, in addition to prom-client's names, which dashboards for Node use:
 *   `process_…`, `nodejs_…`
 * @returns a function that reads the current values
 */
export function watchProcess(prefix: string): () => Promise<MetricSnapshot> {
  if (!watched) {
    watched = new Registry()
    collectDefaultMetrics({ register: watched })
  }
  const registry = watched
  return async () => {
    const metrics = (await takeSnapshot(registry)).filter((metric) => !isMisnamedTotal(metric))
    return [...metrics.map((metric) => withPrefix(prefix, metric)), ...metrics]
  }
}

function withPrefix(prefix: string, metric: Metric): Metric {
  const values = metric.values.map((value) =>
    value.metricName === undefined ? value : { ...value, metricName: prefix + value.metricName },
  )
  return { ...metric, name: prefix + metric.name, values }
}

// prom-client adds a gauge `…_total` to each gauge by `type`. According to `promtool check metrics`, only names of counters may end like
// this, and these gauges are only sums.
function isMisnamedTotal({ name, type }: Metric): boolean {
  return type === 'gauge' && name.endsWith('_total')
}

/** Renders the snapshots of any number of processes as one text in Prometheus' exposition format 0.0.4. */
export async function renderMetrics(snapshots: readonly MetricSnapshot[]): Promise<string> {
  return aggregate(snapshots).metrics()
}

/** Sums the counters of processes that have exited. Drops their gauges. */
export async function sumCounters(snapshots: readonly MetricSnapshot[]): Promise<MetricSnapshot> {
  const sum = await takeSnapshot(aggregate(snapshots))
  return sum.filter((metric) => metric.type === 'counter' || metric.type === 'histogram')
}

// prom-client can make a registry from plain snapshots, which is the documented way to add values that were counted elsewhere. Its own
// collection over cluster messages is not used, see docs/decisions/metrics.md.
function aggregate(snapshots: readonly MetricSnapshot[]): Registry {
  return AggregatorRegistry.aggregate<typeof METRICS_CONTENT_TYPE>([...snapshots])
}

/**
 * Metrics that matter in each process by itself: in sums and averages, a primary process with few files and nothing to do would hide
 * workers with almost too many files, or with an event loop that is held up.
 */
const ofEachProcess = /(process_(open|max)_fds|nodejs_eventloop_lag_p\d+_seconds)$/

function aggregatorOf({ name, aggregator }: Pick<Metric, 'name' | 'aggregator'>): Metric['aggregator'] {
  // prom-client omits the start time from sums of processes. The latest start time shows that a worker was restarted.
  return aggregator === 'omit' || ofEachProcess.test(name) ? 'max' : aggregator
}

async function takeSnapshot(registry: Registry): Promise<MetricSnapshot> {
  const metrics = await registry.getMetricsAsJSON()
  return metrics.map((metric) => ({
    name: metric.name,
    help: metric.help,
    // Declared as a numeric enum, but actually a string: 'counter', 'gauge', 'histogram'.
    type: String(metric.type),
    aggregator: aggregatorOf(metric),
    // The mean of an empty sample is NaN, which becomes null in JSON, and so on the way from a worker to the primary process.
    values: metric.values.filter((value) => Number.isFinite(value.value)),
  }))
}
