import { inspect } from 'node:util'

/** The clock of the limits: monotonic milliseconds from an arbitrary origin. */
export type SluiceClock = { now(): number }

/** A clock that stands still until it is advanced. */
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

/** Creates a clock for `startSluice`, with which a test can skip a window of 15 minutes. */
export function createClock(): TestClock {
  // Not 0, so that no start time looks as if it were unset.
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
  throw new TypeError(`advance: got ${inspect(time)}, needs milliseconds or a time such as 15m`)
}
