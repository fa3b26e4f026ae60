import fc from 'fast-check'
import { expect, test } from 'vitest'
import { calendarUnits } from '../../proxy/limits/algorithms/calendar/calendar.ts'
import { calendarWindows } from '../../proxy/limits/algorithms/calendar/calendar-windows.ts'
import type { CalendarUnit } from '../../proxy/policy.ts'
import { testSeed } from '../support/random/seed.ts'
import { askPython } from './python.ts'

/*
 * Python's zoneinfo has the time zone rules of Debian's tzdata, and Node has those of its ICU. Both compute where windows of the calendar
 * begin and end, at instants from 2012 to 2030, half of them around days on which clocks change. Zones whose rules differ between the two
 * databases' versions are left out.
 */

const INSTANTS = Number(process.env['JUDGE_SAMPLES'] ?? 5_000)
const zones = [
  'UTC',
  'Europe/Berlin',
  'Europe/London',
  'America/New_York',
  'America/Sao_Paulo',
  'America/Santiago',
  'America/St_Johns',
  'Atlantic/Azores',
  'Asia/Kathmandu',
  'Asia/Kolkata',
  'Australia/Lord_Howe',
  'Pacific/Auckland',
  'Pacific/Chatham',
  'Antarctica/Troll',
]
const DAY_MS = 86_400_000
const [first, last] = [Date.UTC(2012, 0), Date.UTC(2030, 0)]

/** A day, as month and day, on which clocks change in some of these zones. */
const changeDay = fc.constantFrom('03-10', '03-28', '04-03', '04-05', '09-27', '10-03', '10-28', '11-01')
const instant = fc.oneof(
  fc.integer({ min: first, max: last }),
  fc
    .tuple(fc.integer({ min: 2012, max: 2029 }), changeDay, fc.integer({ min: -5 * DAY_MS, max: 5 * DAY_MS }))
    .map(([year, day, laterMs]) => Date.parse(`${year}-${day}T01:00Z`) + laterMs),
)
const question = fc.tuple(
  fc.constantFrom(...zones),
  fc.constantFrom(...calendarUnits),
  instant.filter((atMs) => atMs >= first),
)

test('windows of the calendar begin and end when zoneinfo says', () => {
  const asked: [string, CalendarUnit, number][] = fc.sample(question, { numRuns: INSTANTS, seed: testSeed() })
  const found = asked.map(([timezone, unit, atMs]) => {
    const { startMs, endMs } = calendarWindows({ unit, timezone }).at(atMs)
    return [startMs, endMs]
  })
  const answers = askPython('calendar_borders.py', ['tzdata'], asked)
  expect(found.map((span, at) => [asked[at], span])).toEqual(
    (answers as number[][]).map((span, at) => [asked[at], span]),
  )
})
