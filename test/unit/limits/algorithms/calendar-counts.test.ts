import { beforeEach, describe, expect, test } from 'vitest'
import { MemoryLimiter } from '../../../../proxy/limits/store/memory/limiter.ts'
import type { CalendarWindow, Policy } from '../../../../proxy/policy.ts'
import { instants } from '../../../support/calendar/instants.ts'
import { makePolicy } from '../../../support/limiter/charges.ts'

const HOUR_MS = 3_600_000
/** The monotonic clock, and how far the time of day is ahead of it. */
let nowMs: number
let aheadMs: number
let limiter: MemoryLimiter

const setTime = (epochMs: number): void => void (aheadMs = epochMs - nowMs)

const monthly = (calendar: CalendarWindow = { unit: 'month' }, rest: Partial<Policy> = {}): Policy =>
  makePolicy('monthly', 2, 31 * 24 * HOUR_MS, { algorithm: 'calendar', calendar, ...rest })

const ask = (policy: Policy): ReturnType<MemoryLimiter['decide']> =>
  limiter.decide([{ policy, partitionKey: 'ip:192.0.2.1' }])

function stateOf(decision: ReturnType<MemoryLimiter['decide']>): object {
  if (decision.outcome === 'unavailable') throw new Error('counters in memory are there')
  const [state] = decision.states
  return { outcome: decision.outcome, remaining: state?.remaining, resetMs: state?.resetMs }
}

beforeEach(() => {
  nowMs = 5_000
  aheadMs = 0
  limiter = new MemoryLimiter({ maxKeys: 100, seed: 1, now: () => nowMs, wallNow: () => nowMs + aheadMs })
})

describe('counts by the calendar', () => {
  test('counts by the calendar admit the quota in each window of the table of instants, until the window ends', () => {
    for (const [timezone, unit, at, , end] of instants) {
      const policy = makePolicy(`${unit}.${timezone}`, 2, HOUR_MS, {
        algorithm: 'calendar',
        calendar: { unit, timezone },
      })
      const resetMs = Date.parse(end) - Date.parse(at)
      setTime(Date.parse(at))
      const client = [{ policy, partitionKey: `ip ${at}` }]
      const states = [1, 2, 3].map(() => stateOf(limiter.decide(client)))
      expect(states, `${timezone} ${unit} ${at}`).toEqual([
        { outcome: 'allowed', remaining: 1, resetMs },
        { outcome: 'allowed', remaining: 0, resetMs },
        { outcome: 'refused', remaining: 0, resetMs },
      ])
      setTime(Date.parse(end) - 1)
      expect(stateOf(limiter.decide(client))).toEqual({ outcome: 'refused', remaining: 0, resetMs: 1 })
      setTime(Date.parse(end))
      expect(stateOf(limiter.decide(client))).toMatchObject({ outcome: 'allowed', remaining: 1 })
    }
  })

  test('counts by the calendar follow the wall clock, even if the monotonic clock was suspended', () => {
    const policy = monthly()
    setTime(Date.parse('2027-01-31T23:00Z'))
    expect([ask(policy), ask(policy), ask(policy)].map(({ outcome }) => outcome)).toEqual([
      'allowed',
      'allowed',
      'refused',
    ])
    // The machine was asleep for an hour.
    setTime(Date.parse('2027-02-01T00:00Z'))
    expect(stateOf(ask(policy))).toEqual({ outcome: 'allowed', remaining: 1, resetMs: 28 * 24 * HOUR_MS })
  })

  test('counts by the calendar are kept when the time zone changes, until the window ends in the new zone', () => {
    setTime(Date.parse('2027-01-31T20:00Z'))
    ask(monthly())
    const inParis = monthly({ unit: 'month', timezone: 'Europe/Paris' })
    expect(stateOf(ask(inParis))).toEqual({ outcome: 'allowed', remaining: 0, resetMs: 3 * HOUR_MS })
    expect(limiter.read({ policy: inParis, partitionKey: 'ip:192.0.2.1' })).toEqual({
      used: 2,
      resetMs: 3 * HOUR_MS,
    })
    nowMs += 3 * HOUR_MS
    expect(stateOf(ask(inParis))).toMatchObject({ outcome: 'allowed', remaining: 1 })
  })

  test('counts by the calendar are kept when the clock is set back, until the window ends by the new time', () => {
    setTime(Date.parse('2027-02-01T00:30Z'))
    ask(monthly())
    setTime(Date.parse('2027-01-31T23:30Z'))
    expect(stateOf(ask(monthly()))).toEqual({ outcome: 'allowed', remaining: 0, resetMs: HOUR_MS / 2 })
  })

  test('counts by the calendar get back units reserved in the same window, and not in a later one', () => {
    const policy = monthly({ unit: 'month' }, { countStatus: [{ first: 401, last: 401 }] })
    const reserve = () => {
      const decision = ask(policy)
      const reservation = decision.outcome === 'allowed' ? decision.states[0]?.reservation : undefined
      if (!reservation) throw new Error('nothing was reserved')
      return reservation
    }
    const used = () => limiter.read({ policy, partitionKey: 'ip:192.0.2.1' })?.used
    setTime(Date.parse('2027-01-31T23:59Z'))
    limiter.settle(reserve(), 0)
    expect(used()).toBeUndefined()
    const before = reserve()
    nowMs += HOUR_MS
    reserve()
    limiter.settle(before, 0)
    expect(used()).toBe(1)
  })

  test('counts by the calendar that pend sync end by the monotonic clock when their window does', () => {
    setTime(Date.parse('2027-01-31T23:00Z'))
    limiter.decidePendingSync([{ policy: monthly(), partitionKey: 'ip:192.0.2.1' }])
    const [pending] = limiter.takePending(10)
    expect(pending).toMatchObject({ endsAtMs: nowMs + HOUR_MS, counted: [1] })
    limiter.decidePendingSync([{ policy: monthly(), partitionKey: 'ip:192.0.2.2' }])
    setTime(Date.parse('2027-02-01T00:00Z'))
    expect(limiter.takePending(10)).toEqual([])
  })

  test('counts by the calendar free the slots of a window that has ended', () => {
    setTime(Date.parse('2027-01-31T23:00Z'))
    for (let i = 0; i < 100; i++) limiter.decide([{ policy: monthly(), partitionKey: `ip:${i}` }])
    nowMs += HOUR_MS
    for (let i = 0; i < 100; i++) limiter.decide([{ policy: monthly(), partitionKey: `later:${i}` }])
    expect(limiter.tables.get('calendar')?.()).toEqual({ size: 100, capacity: 100, evictions: 0 })
  })
})
