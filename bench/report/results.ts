import type { Machine } from '../measure/machine.ts'

/** One round of one subject. CPU is in microseconds per request. */
export type Sample = {
  readonly cpuUs: number
  readonly userUs: number
  readonly systemUs: number
  /** CPU time of Redis per request; 0 if Redis was not used. */
  readonly redisUs: number
  readonly requestsPerSecond: number
}

/** One round at a fixed rate, in microseconds from the instant at which each request was due. */
export type LatencySample = {
  readonly p50Us: number
  readonly p99Us: number
  readonly p999Us: number
  /** The 99th percentile of the generator's own delay. If it exceeds a few milliseconds, the machine was too busy. */
  readonly sentLateP99Us: number
}

export type MemorySample = {
  readonly processes: number
  /** The memory of the largest process, freshly started. */
  readonly restBytes: number
  /** The memory of all processes, with the idle connections. */
  readonly connectedBytes: number
  readonly bytesPerConnection: number
}

export type Measured<Kind> = {
  readonly scenario: string
  readonly subject: string
  readonly samples: Kind[]
}

export type Results = {
  readonly machine: Machine
  readonly options: {
    readonly rounds: number
    readonly seconds: number
    readonly warmupRequests: number
    readonly connections: number
    readonly idleConnections: number
  }
  /** Subjects that this machine lacks, and the reasons. */
  readonly missing: readonly string[]
  readonly cpu: Measured<Sample>[]
  readonly latency: Measured<LatencySample>[]
  /** Requests a second at which latency was measured; 0 if it was not measured. */
  latencyRate: number
  readonly memory: Measured<MemorySample>[]
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? NaN)) / 2
}

/** The samples of one subject in one scenario, one per round; empty if it was not measured. */
export function samplesOf<Kind>(
  measured: readonly Measured<Kind>[],
  scenario: string,
  subject: string,
): readonly Kind[] {
  return measured.find((one) => one.scenario === scenario && one.subject === subject)?.samples ?? []
}

/**
 * The median of the ratios between two subjects in each round. A machine that is slower in one round slows down both subjects, so this
 * varies less than the ratio of two medians. NaN if either was not measured.
 */
export function medianRatio<Kind>(
  dividends: readonly Kind[],
  divisors: readonly Kind[],
  figure: (sample: Kind) => number,
): number {
  const ratios = dividends.flatMap((dividend, round) => {
    const divisor = divisors[round]
    return divisor === undefined ? [] : [figure(dividend) / figure(divisor)]
  })
  return median(ratios)
}

/**
 * A percentile of sorted values, by the nearest rank.
 *
 * @param share between 0 and 1
 */
export function percentile(sorted: Float64Array, share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? NaN
}
