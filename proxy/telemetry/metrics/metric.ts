import type { DurationHistogram } from './histogram.ts'
import type { Metric, MetricValue } from './prometheus.ts'

/** Makes a counter, which only increases. The metrics show the sum over all processes. @param help its description in the metrics */
export function counter(name: string, help: string, values: MetricValue[]): Metric {
  return { name, help, type: 'counter', aggregator: 'sum', values }
}

/** @param aggregator how to combine the values of several processes */
export function gauge(
  name: string,
  help: string,
  values: MetricValue[],
  aggregator: 'sum' | 'max' | 'min' = 'sum',
): Metric {
  return { name, help, type: 'gauge', aggregator, values }
}

/** Makes a histogram of durations, which the metrics show in seconds. @param all the histogram of each combination of labels */
export function histogram(
  name: string,
  help: string,
  ...all: { readonly labels: MetricValue['labels']; readonly duration: DurationHistogram }[]
): Metric {
  const values = all.flatMap(({ labels, duration }) =>
    duration.values(name).map((value) => ({ ...value, labels: { ...labels, ...value.labels } })),
  )
  return { name, help, type: 'histogram', aggregator: 'sum', values }
}

/** Makes the value of a metric without labels. */
export function single(value: number): MetricValue[] {
  return [{ labels: {}, value }]
}

/** Makes one value for each value of the label: `by('kind', { refused: 3, reset: 0 })`. */
export function by(label: string, counted: Readonly<Record<string, number>>): MetricValue[] {
  return Object.entries(counted).map(([labelValue, value]) => ({ labels: { [label]: labelValue }, value }))
}
