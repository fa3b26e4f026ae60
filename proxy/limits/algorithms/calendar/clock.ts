import type { WindowClock } from '../fixed/counts.ts'
import { windowFrom } from './calendar-windows.ts'

/**
 * A clock whose windows end at the calendar's borders, by the time of day, even if the machine's clock was set meanwhile or the machine
 * was asleep.
 *
 * @param wallNow the time of day, in milliseconds since 1970
 */
export function createCalendarClock(wallNow: () => number = Date.now): WindowClock {
  /** The time of day minus the monotonic clock, when it was last read. */
  let offsetMs = 0
  return {
    endsForAll: true,
    readTime(nowMs) {
      const epochMs = wallNow()
      offsetMs = epochMs - nowMs
      return epochMs
    },
    windowEnd: (policy, epochMs) => epochMs + windowFrom(policy, epochMs),
    toMonotonic: (epochMs) => epochMs - offsetMs,
  }
}
