/** The results of normal clients' requests within a second. */
export type Round = {
  readonly latenciesMs: readonly number[]
  /** The number of failures by reason: a status or an error code. */
  readonly failures: Readonly<Record<string, number>>
}

/** The service that a client got over a span of time. */
export type Service = {
  readonly requests: number
  readonly failed: number
  readonly failures: Readonly<Record<string, number>>
  readonly p99Ms: number
  readonly slowestMs: number
}

/**
 * The span is cut into this many parts, and the median of their percentiles counts, so that another program's burst does not look like
 * slowness.
 */
const parts = 5

export function summarize(rounds: readonly Round[]): Service {
  const failures: Record<string, number> = {}
  for (const round of rounds)
    for (const [reason, count] of Object.entries(round.failures))
      failures[reason] = (failures[reason] ?? 0) + count
  const latenciesMs = rounds.flatMap((round) => round.latenciesMs)
  const percentiles = Array.from({ length: parts }, (_, part) =>
    percentile99(
      rounds
        .slice((part * rounds.length) / parts, ((part + 1) * rounds.length) / parts)
        .flatMap((round) => round.latenciesMs),
    ),
  )
  const failed = Object.values(failures).reduce((sum, count) => sum + count, 0)
  return {
    requests: latenciesMs.length + failed,
    failed,
    failures,
    p99Ms: percentiles.sort((a, b) => a - b)[Math.floor(parts / 2)] ?? Infinity,
    slowestMs: Math.max(0, ...latenciesMs),
  }
}

/** Infinity if there are no values, because no client was served. */
function percentile99(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? Infinity
}
