import type { CalendarUnit, CalendarWindow, Policy } from '../../../policy.ts'
import { openZone, type Zone } from './zone.ts'

/** A window from its first millisecond to the first millisecond after it. */
type Span = { readonly startMs: number; readonly endMs: number }

/** The windows of a unit in a time zone, without gaps: each begins where the one before ends. */
export type CalendarWindows = {
  /** Returns the window that contains an instant. The last window is cached: a call for an instant in it costs two comparisons. */
  at(epochMs: number): Span
  /** Milliseconds from an instant to the end of its window. */
  leftMs(epochMs: number): number
  /** Milliseconds from the start of its window to its end. */
  lengthMs(epochMs: number): number
  /**
   * Returns the borders around an instant, for use with a clock that may differ from the instant's: the starts of the previous window, of
   * this one, and of the next two, in milliseconds, separated by spaces. There are more borders if a clock change makes these windows
   * shorter than an hour.
   */
  bordersAround(epochMs: number): string
}

const opened = new Map<string, CalendarWindows>()
const openedFor = new WeakMap<CalendarWindow, CalendarWindows>()

/**
 * Returns the same object for the same unit and zone, so that all rules share the cached window.
 *
 * @throws RangeError if there is no such time zone
 */
export function calendarWindows(calendar: CalendarWindow): CalendarWindows {
  const known = openedFor.get(calendar)
  if (known) return known
  const { unit, timezone = 'UTC' } = calendar
  const name = `${unit} ${timezone}`
  const windows = opened.get(name) ?? createCalendarWindows(unit, openZone(timezone))
  opened.set(name, windows)
  openedFor.set(calendar, windows)
  return windows
}

/** Milliseconds until a window that begins now ends: at the next border of the calendar, or after `windowMs`. */
export function windowFrom({ calendar, windowMs }: Policy, epochMs: number): number {
  return calendar ? calendarWindows(calendar).leftMs(epochMs) : windowMs
}

function createCalendarWindows(unit: CalendarUnit, zone: Zone): CalendarWindows {
  const find = unit === 'hour' ? hourAt : dayAt(unit)
  let known: Span = { startMs: 0, endMs: 0 }
  let borders = ''
  let bordersOf = known

  function at(epochMs: number): Span {
    if (known.startMs > epochMs || epochMs >= known.endMs) known = find(zone, epochMs)
    return known
  }

  return {
    at,
    leftMs: (epochMs) => at(epochMs).endMs - epochMs,
    lengthMs(epochMs) {
      const { startMs, endMs } = at(epochMs)
      return endMs - startMs
    },
    bordersAround(epochMs) {
      const running = at(epochMs)
      if (bordersOf === running) return borders
      let { startMs: firstMs, endMs: lastMs } = running
      const starts = [firstMs, lastMs]
      do {
        firstMs = find(zone, firstMs - 1).startMs
        starts.unshift(firstMs)
      } while (running.startMs - firstMs < HOUR_MS)
      do {
        lastMs = find(zone, lastMs).endMs
        starts.push(lastMs)
      } while (lastMs - running.endMs < HOUR_MS)
      borders = starts.join(' ')
      bordersOf = running
      return borders
    },
  }
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/**
 * An hour begins when local clocks show a time on the hour, or are set back to one. If clocks skip that time, the hour begins at the skip.
 * At any other clock change, the current hour continues, as on Lord Howe Island, where clocks change by half an hour.
 */
function hourAt(zone: Zone, epochMs: number): Span {
  const offset = zone.offsetAt(epochMs)
  const endMs = wholeHour(epochMs, offset) + HOUR_MS
  if (zone.offsetAt(endMs) === offset) return { startMs: hourStart(zone, epochMs), endMs }
  const changeMs = zone.findChange(epochMs, endMs)
  const isBorder = hourStart(zone, changeMs) === changeMs
  return {
    startMs: hourStart(zone, epochMs),
    endMs: isBorder ? changeMs : wholeHour(changeMs, zone.offsetAt(changeMs)) + HOUR_MS,
  }
}

function hourStart(zone: Zone, epochMs: number): number {
  const offset = zone.offsetAt(epochMs)
  const startMs = wholeHour(epochMs, offset)
  if (zone.offsetAt(startMs) === offset) return startMs
  const changeMs = zone.findChange(startMs, epochMs)
  const offsetBefore = zone.offsetAt(changeMs - 1)
  const isSkipped = startMs + offset >= changeMs + offsetBefore
  return isSkipped ? changeMs : wholeHour(changeMs - 1, offsetBefore)
}

/** Returns when local clocks with this offset showed, or would have shown, the last whole hour. */
function wholeHour(epochMs: number, offset: number): number {
  return Math.floor((epochMs + offset) / HOUR_MS) * HOUR_MS - offset
}

/**
 * A day, week or month begins when local clocks show its midnight or, if they skip midnight, a later time. A day that they skip has no
 * window. If they show a midnight twice, the first one counts; if they are set back from shortly after midnight, as in St. John's
 * until 2011, either one may count.
 */
function dayAt(unit: 'day' | 'week' | 'month'): (zone: Zone, epochMs: number) => Span {
  return (zone, epochMs) => {
    let local = startOf(unit, epochMs + zone.offsetAt(epochMs))
    let startMs = zone.firstAt(local)
    if (startMs > epochMs) {
      local = startOf(unit, local - 1)
      startMs = zone.firstAt(local)
    }
    // Clocks that are set back past midnight show the previous day again. That time still belongs to the day that had begun.
    for (;;) {
      local = nextOf(unit, local)
      const endMs = zone.firstAt(local)
      if (epochMs < endMs) return { startMs, endMs }
      startMs = endMs
    }
  }
}

function startOf(unit: 'day' | 'week' | 'month', localMs: number): number {
  const date = new Date(localMs)
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  if (unit === 'month') return Date.UTC(year, month)
  // Days since Monday.
  return Date.UTC(year, month, unit === 'day' ? day : day - ((date.getUTCDay() + 6) % 7))
}

function nextOf(unit: 'day' | 'week' | 'month', localMs: number): number {
  if (unit !== 'month') return localMs + (unit === 'day' ? DAY_MS : 7 * DAY_MS)
  const date = new Date(localMs)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}
