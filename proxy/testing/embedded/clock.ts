/** The clock of the limits: monotonic milliseconds from any beginning. */
export type SluiceClock = { now(): number }

/** A clock that stands still until it is moved. */
export type TestClock = SluiceClock & {
  /**
   * Moves the clock forward.
   *
   * @param time milliseconds, or a whole number with `ms`, `s`, `m`, `h` or `d`, such as `15m`
   * @throws TypeError for any other time, or a negative one
   */
  advance(time: number | string): void
}

const unitsMs = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** A clock for `startSluice`, with which a test can wait a window of 15 minutes in no time. */
export function createClock(): TestClock {
  // Not 0, so that nothing that begins now looks as if it had no beginning.
  let nowMs = 1_000_000
  return {
    now: () => nowMs,
    advance(time) {
      nowMs += millisecondsOf(time)
    },
  }
}

function millisecondsOf(time: number | string): number {
  const [, count, unit = ''] = /^(\d+)([a-z]+)$/.exec(String(time)) ?? []
  const ms = typeof time === 'number' ? time : Number(count) * (unitsMs.get(unit) ?? Number.NaN)
  if (Number.isFinite(ms) && ms >= 0) return ms
  throw new TypeError(`advance: got ${JSON.stringify(time)}, needs milliseconds or a time such as 15m`)
}
