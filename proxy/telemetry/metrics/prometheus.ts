import { AggregatorRegistry, collectDefaultMetrics, Registry } from 'prom-client'

/** One number of a metric. `metricName` is set if it differs from the metric's: the parts of a histogram. */
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
  /** How the values of several processes become one. */
  readonly aggregator: 'sum' | 'average' | 'min' | 'max' | 'first' | 'omit'
  readonly values: readonly MetricValue[]
}

/** The metrics of one process at one instant. */
export type MetricSnapshot = readonly Metric[]

export const METRICS_CONTENT_TYPE = Registry.PROMETHEUS_CONTENT_TYPE

/** The registry of this process: its observers cannot be removed, and each further set would cost time at every turn and collection. */
let watched: Registry | undefined

/**
 * Watches this process, from the first call on: CPU, memory, event loop, garbage collection, handles. All gateways in it read the
 * same values.
 *
 * @param prefix begins each name of a second set with the same values, in addition to the names that prom-client gives and that
 *   dashboards for Node know: `process_…`, `nodejs_…`
 * @returns reads the present values
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

// prom-client has a gauge `…_total` for each gauge by `type`. Only counters are to end so, says `promtool check metrics`,
// and these are nothing but the sums.
function isMisnamedTotal({ name, type }: Metric): boolean {
  return type === 'gauge' && name.endsWith('_total')
}

/** The snapshots of any number of processes as one text in Prometheus' exposition format 0.0.4. */
export async function renderMetrics(snapshots: readonly MetricSnapshot[]): Promise<string> {
  return aggregate(snapshots).metrics()
}

/** The totals of processes that have exited: the sum of their counters. Their gauges are dropped. */
export async function sumCounters(snapshots: readonly MetricSnapshot[]): Promise<MetricSnapshot> {
  const sum = await takeSnapshot(aggregate(snapshots))
  return sum.filter((metric) => metric.type === 'counter' || metric.type === 'histogram')
}

// prom-client makes a registry from plain snapshots, whoever took them: the documented way in for values that were
// counted elsewhere. Its own collection over cluster messages is not used, see docs/decisions/metrics.md.
function aggregate(snapshots: readonly MetricSnapshot[]): Registry {
  return AggregatorRegistry.aggregate<typeof METRICS_CONTENT_TYPE>([...snapshots])
}

async function takeSnapshot(registry: Registry): Promise<MetricSnapshot> {
  const metrics = await registry.getMetricsAsJSON()
  return metrics.map((metric) => ({
    name: metric.name,
    help: metric.help,
    // Declared as a numeric enum, in truth a string: 'counter', 'gauge', 'histogram'.
    type: String(metric.type),
    // prom-client omits the start time where processes are added up. The latest one tells of a restarted worker.
    aggregator: metric.aggregator === 'omit' ? 'max' : metric.aggregator,
    // The mean of an empty sample is NaN, which JSON, and with it the way from worker to primary, turns into null.
    values: metric.values.filter((value) => Number.isFinite(value.value)),
  }))
}
