/** Times are valid from 1970 to 2200. Any other time is a number in an unexpected unit, or from a clock that was never set. */
const LAST_MS = Date.UTC(2200, 0, 1)
const MAX_DURATION_MS = 30 * 86_400_000

/**
 * Converts a time since 1970 to milliseconds. Its magnitude shows whether it is in seconds, milliseconds, microseconds or nanoseconds: the
 * range of each unit begins where the previous unit has reached the year 5138. A time before 1973 is therefore read as seconds.
 */
export function epochMs(count: number): number {
  if (count < 1e11) return Math.round(count * 1e6) / 1e3
  if (count < 1e14) return count
  return count < 1e17 ? count / 1e3 : count / 1e6
}

/** Whether a request can have this time. */
export function isTime(ms: number): boolean {
  return ms >= 0 && ms < LAST_MS
}

/** Returns a valid duration; otherwise undefined. */
export function validDuration(ms: number | undefined): number | undefined {
  return ms !== undefined && ms >= 0 && ms <= MAX_DURATION_MS ? ms : undefined
}

/**
 * Makes a reader for the durations of one log, which converts numbers of an unknown unit to milliseconds. Numbers in seconds have a
 * fraction, because hardly any request takes a whole number of seconds; whole numbers are in milliseconds or a finer unit.
 * - A fraction means that the log has seconds. Before the first fraction, numbers up to 60 are read as seconds, and a larger number means
 *   that the log does not have seconds.
 * - A whole number that would be 100 s or more in milliseconds is in the finest unit; one that would be some hours means that all numbers
 *   are.
 *
 * @param finestPerMs number of finest units in a millisecond: nanoseconds for Caddy, microseconds for nginx
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

/** Parses a duration in Go's format, such as `1m2.5s` or `12µs`. Returns milliseconds. */
export function parseGoDuration(text: string): number | undefined {
  if (!goDuration.test(text)) return undefined
  let ms = 0
  for (const [, count, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|μs|ns)/g))
    ms += Number(count) * (goUnits[unit] ?? 0)
  return ms
}
