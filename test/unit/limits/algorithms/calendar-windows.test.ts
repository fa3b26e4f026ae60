import { describe, expect, test } from 'vitest'
import { calendarWindows } from '../../../../proxy/limits/algorithms/calendar/calendar-windows.ts'
import { instants } from '../../../support/calendar/instants.ts'

const iso = (epochMs: number): string => new Date(epochMs).toISOString().replace('.000Z', 'Z')

describe('windows of the calendar', () => {
  test('windows of the calendar begin and end where zoneinfo says', () => {
    const found = instants.map(([timezone, unit, at]) => {
      const { startMs, endMs } = calendarWindows({ unit, timezone }).at(Date.parse(at))
      return [timezone, unit, at, iso(startMs), iso(endMs)]
    })
    expect(found).toEqual(instants)
  })

  test('windows of the calendar are the same whichever instant was asked about before', () => {
    for (const [timezone, unit, at, start, end] of instants.toReversed()) {
      const span = calendarWindows({ unit, timezone }).at(Date.parse(at))
      expect([iso(span.startMs), iso(span.endMs)], `${timezone} ${unit} ${at}`).toEqual([start, end])
    }
  })

  test('windows of the calendar are UTC without a time zone', () => {
    const { startMs, endMs } = calendarWindows({ unit: 'week' }).at(Date.parse('2027-01-01T12:00:00Z'))
    expect([iso(startMs), iso(endMs)]).toEqual(['2026-12-28T00:00:00Z', '2027-01-04T00:00:00Z'])
  })

  test('windows of the calendar have borders around them, of the window before and the one after', () => {
    const windows = calendarWindows({ unit: 'month', timezone: 'Europe/Berlin' })
    const borders = windows.bordersAround(Date.parse('2027-03-10T12:00:00Z')).split(' ').map(Number)
    expect(borders.map(iso)).toEqual([
      '2027-01-31T23:00:00Z',
      '2027-02-28T23:00:00Z',
      '2027-03-31T22:00:00Z',
      '2027-04-30T22:00:00Z',
    ])
  })

  test('windows of the calendar differ in length where clocks are set', () => {
    const day = calendarWindows({ unit: 'day', timezone: 'Europe/Berlin' })
    const hours = (at: string): number => day.lengthMs(Date.parse(at)) / 3_600_000
    expect(['2027-03-27T12:00Z', '2027-03-28T12:00Z', '2027-10-31T12:00Z'].map(hours)).toEqual([24, 23, 25])
  })

  test('windows of the calendar are not computed again within a window', () => {
    const windows = calendarWindows({ unit: 'day', timezone: 'Asia/Tokyo' })
    const atMs = Date.parse('2027-05-05T05:05:05Z')
    expect(windows.at(atMs + 60_000)).toBe(windows.at(atMs))
    expect(windows.bordersAround(atMs + 60_000)).toBe(windows.bordersAround(atMs))
  })

  test('windows of the calendar cannot be computed for an unknown time zone', () => {
    expect(() => calendarWindows({ unit: 'day', timezone: 'Europe/Berln' })).toThrow(RangeError)
  })
})
