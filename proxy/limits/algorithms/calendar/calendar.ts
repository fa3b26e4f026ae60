import { MAX_QUOTA, type CalendarUnit } from '../../../policy.ts'
import type { Algorithm } from '../algorithm.ts'
import { WindowCounts } from '../fixed/counts.ts'
import { createCalendarClock } from './clock.ts'
import { calendarInRedis } from './redis.ts'

export const calendarUnits = ['hour', 'day', 'week', 'month'] as const satisfies readonly CalendarUnit[]

/** Usual lengths: the last day of daylight saving time has an hour more. */
const lengthsMs: Readonly<Record<CalendarUnit, number>> = {
  hour: 3_600_000,
  day: 86_400_000,
  week: 7 * 86_400_000,
  month: 31 * 86_400_000,
}

/** Windows that begin and end for all clients at once, with the hour, day, week or month of a time zone. */
export const calendar: Algorithm = {
  name: 'calendar',
  countsInFlight: false,
  takesUnits: false,
  resets: 'all',
  rule: {
    isChosen: ({ window }) => typeof window === 'string',
    maxQuota: MAX_QUOTA,
    excludes: {
      algorithm: `needs to be fixed with window: ${calendarUnits.join(', ')}: windows of other algorithms do not begin with the calendar`,
    },
    takesBurst: false,
    toQuota({ requests = 0, window, timezone }) {
      if (typeof window !== 'string') throw new RangeError('a window of the calendar has a name')
      const calendar = { unit: window, ...(timezone !== undefined && { timezone }) }
      return { quota: requests, windowMs: lengthsMs[window], calendar }
    },
  },
  memoryTables: (maxKeys) => ({ calendar: maxKeys }),
  createCounts: (options) => new WindowCounts(options, 'calendar', createCalendarClock(options.wallNow)),
  redis: calendarInRedis,
}
