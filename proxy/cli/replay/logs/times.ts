/** Times are valid from 1970 to 2200. Others are numbers in an unexpected unit, or from a clock that was never set. */
const LAST_MS = Date.UTC(2200, 0, 1)
const MAX_DURATION_MS = 30 * 86_400_000

/**
 * Milliseconds of a time since 1970 in seconds, milliseconds, microseconds or nanoseconds, which its magnitude tells: each of them
 * begins where the unit before has come to the year 5138. Before 1973 a time is taken for seconds.
 */
export function epochMs(count: number): number {
  if (count < 1e11) return Math.round(count * 1e6) / 1e3
  if (count < 1e14) return count
  return count < 1e17 ? count / 1e3 : count / 1e6
}

/** Whether a time can be that of a request. */
export function isTime(ms: number): boolean {
  return ms >= 0 && ms < LAST_MS
}

/** A valid duration, else undefined. */
export function validDuration(ms: number | undefined): number | undefined {
  return ms !== undefined && ms >= 0 && ms <= MAX_DURATION_MS ? ms : undefined
}

/**
 * Makes a reader for the durations of one log, in milliseconds, if a number does not tell its unit. Seconds have a fraction, as nearly no
 * request takes a whole number of them; whole numbers are milliseconds or something finer.
 * - A fraction means that the log has seconds. Before the first one, numbers up to 60 are taken for seconds, and a larger one means that
 *   it has none.
 * - A whole number of 100 s in milliseconds or more is in `finest`; one of some hours means that all are.
 *
 * @param finestPerMs how many of the finest unit make a millisecond: nanoseconds for Caddy, microseconds for nginx
 */
export function createDurationReader(finestPerMs: number): (count: number) => number {
  let unit: 'unknown' | 'seconds' | 'whole' | 'finest' = 'unknown'
  return (count) => {
    if (!Number.isInteger(count)) unit = 'seconds'
    else if (count >= 1e7) unit = 'finest'
    else if (count > 60 && unit === 'unknown') unit = 'whole'
    if (unit === 'unknown' || unit === 'seconds') return count * 1e3
    return unit === 'whole' && count < 1e5 ? count : count / finestPerMs
  }
}

const goUnits: Readonly<Record<string, number>> = {
  h: 3.6e6,
  m: 6e4,
  s: 1e3,
  ms: 1,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ns: 1e-6,
}
const goDuration = /^(?:\d+(?:\.\d+)?(?:h|ms|m|s|us|µs|μs|ns)){1,7}$/

/** A duration as Go writes it, such as `1m2.5s` or `12µs`, in milliseconds. */
export function parseGoDuration(text: string): number | undefined {
  if (!goDuration.test(text)) return undefined
  let ms = 0
  for (const [, count, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|μs|ns)/g))
    ms += Number(count) * (goUnits[unit] ?? 0)
  return ms
}
