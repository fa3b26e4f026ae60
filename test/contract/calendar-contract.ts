import { describe, expect, test } from 'vitest'
import type { Decision, Reservation } from '../../proxy/limits/limiter.ts'
import type { Policy } from '../../proxy/policy.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import { openSubject, type StartSubject } from '../support/limiter/subject.ts'
import { eventually } from '../support/wait/eventually.ts'
import { wallClockMs } from '../support/calendar/wall-clock.ts'

const DAY_MS = 86_400_000

const byCalendar = (
  name: string,
  quota: number,
  calendar: Policy['calendar'] & object,
  rest: Partial<Policy> = {},
): Policy => makePolicy(name, quota, 31 * DAY_MS, { algorithm: 'calendar', calendar, ...rest })

const policies = {
  month: byCalendar('calendar.month', 37, { unit: 'month', timezone: 'Asia/Kathmandu' }),
  week: byCalendar('calendar.week', 5, { unit: 'week' }),
  day: byCalendar('calendar.day', 3, { unit: 'day', timezone: 'America/New_York' }),
  hour: byCalendar('calendar.hour', 2, { unit: 'hour', timezone: 'Asia/Kolkata' }),
  narrow: makePolicy('calendar.narrow', 1, 60_000),
  login: byCalendar('calendar.login', 5, { unit: 'month' }, { countStatus: [{ first: 401, last: 401 }] }),
  units: byCalendar('calendar.units', 10, { unit: 'month' }, { cost: { reserve: 3 } }),
}

/** The promises of every counter store about windows of the calendar. If a window ends while a test runs, the test asks again. */
export function describeCalendarContract(name: string, start: StartSubject): void {
  describe(name, () => {
    const subject = openSubject(start, Object.values(policies))

    async function ask(client: string, asked: readonly Policy[], replica = 0): Promise<Decision> {
      const limiter = subject.limiters[replica % subject.limiters.length]
      if (!limiter) throw new RangeError('a subject has at least one limiter')
      return limiter.decide(chargeAll(client, asked))
    }

    const statesOf = (decision: Decision) => (decision.outcome === 'unavailable' ? [] : decision.states)

    /** The current time of day, by the subject's own clock if it has one. */
    const wallMs = (): number => subject.wallNow?.() ?? wallClockMs()

    /** Expects the time until the border, counted from some instant during the question, no matter how long the answer takes. */
    async function expectBorder(policy: Policy, read: () => Promise<number | undefined>): Promise<void> {
      const fromMs = wallMs()
      const resetMs = (await read()) ?? NaN
      const untilMs = wallMs()
      const toleranceMs = subject.advance ? 2 : 2_000
      const border = borderOf(policy, fromMs)
      // The window ended meanwhile.
      if (border <= untilMs) return expectBorder(policy, read)
      expect(resetMs).toBeGreaterThan(border - untilMs - toleranceMs)
      expect(resetMs).toBeLessThan(border - fromMs + toleranceMs)
    }

    test.each(['month', 'week', 'day', 'hour'] as const)(
      '%s: the time until the reset ends at the border',
      async (unit) => {
        const policy = policies[unit]
        await expectBorder(policy, async () => {
          const [state] = statesOf(await ask(newClient(), [policy]))
          expect(state).toMatchObject({ remaining: policy.quota - 1 })
          return state?.resetMs
        })
      },
    )

    test('exactly the quota of 300 parallel requests passes in a calendar window', async () => {
      const decisions = await decideAtOnce(subject.limiters, 300, chargeAll(newClient(), [policies.month]))
      expect(countAllowed(decisions)).toBe(37)
      expect(decisions.filter(({ outcome }) => outcome === 'refused')).toHaveLength(263)
    })

    test('a request that another rule refuses is not counted, and the reset stays at the border', async () => {
      const client = newClient()
      const both = [policies.week, policies.narrow]
      await ask(client, both)
      for (let times = 0; times < 3; times++)
        await expectBorder(policies.week, async () => {
          const decision = await ask(client, both, times)
          expect(decision.outcome).toBe('refused')
          const [week] = statesOf(decision)
          expect(week).toMatchObject({ exceeded: false, remaining: 4 })
          return week?.resetMs
        })
      const fresh = newClient()
      await ask(fresh, [policies.narrow])
      const [week] = statesOf(await ask(fresh, both))
      expect(week).toMatchObject({ exceeded: false, remaining: 5 })
      expect((week?.resetMs ?? 0) > 0 && (week?.resetMs ?? Infinity) <= 7 * DAY_MS).toBe(true)
    })

    test('a calendar window counts units', async () => {
      const client = newClient()
      const outcomes = []
      for (let i = 0; i < 4; i++) outcomes.push((await ask(client, [policies.units], i)).outcome)
      expect(outcomes).toEqual(['allowed', 'allowed', 'allowed', 'refused'])
    })

    test('reserved units are refunded, and missing ones are charged', async () => {
      const client = newClient()
      const charges = chargeAll(client, [policies.login])
      const used = async () => (await subject.operations.inspect(charges))[0]?.used
      const reserve = async (): Promise<Reservation> => {
        const [state] = statesOf(await ask(client, [policies.login]))
        if (!state?.reservation) throw new Error('nothing was reserved')
        return state.reservation
      }
      const first = await reserve()
      const second = await reserve()
      subject.first.settle(first, 0)
      await eventually('one unit is given back', async () => (await used()) === 1)
      subject.first.settle(second, 3)
      await eventually('two units are added', async () => (await used()) === 3)
    })

    test('an operator can inspect and reset a calendar window', async () => {
      const charges = chargeAll(newClient(), [policies.day])
      await decideAtOnce(subject.limiters, 5, charges)
      await expectBorder(policies.day, async () => {
        const [state] = await subject.operations.inspect(charges)
        expect(state).toMatchObject({ used: 3 })
        return state?.resetMs
      })
      expect(await subject.operations.reset(charges)).toBe('done')
      await eventually('all replicas have heard of it', async () => {
        const decisions = await decideAtOnce(subject.limiters, 1, charges)
        return countAllowed(decisions) === 1
      })
    })

    // test/integration/calendar.test.ts covers borders that pass while real stores count.
    test('counting begins anew at the border, if the clock can be set', async () => {
      const { advance } = subject
      if (!advance) return
      const client = newClient()
      const [state] = statesOf(await ask(client, [policies.hour]))
      await ask(client, [policies.hour])
      advance((state?.resetMs ?? NaN) - 1)
      expect((await ask(client, [policies.hour])).outcome).toBe('refused')
      advance(1)
      expect(await ask(client, [policies.hour])).toMatchObject({
        outcome: 'allowed',
        states: [{ remaining: 1, resetMs: 3_600_000 }],
      })
    })
  })
}

/** The next border after an instant, found by reading the local clock minute by minute. */
function borderOf({ calendar }: Policy, atMs: number): number {
  if (!calendar) throw new TypeError('not by the calendar')
  const { unit, timezone = 'UTC' } = calendar
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: timezone,
    weekday: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
  })
  const begins = (epochMs: number): boolean => {
    const parts = Object.fromEntries(format.formatToParts(epochMs).map(({ type, value }) => [type, value]))
    if (parts['minute'] !== '00') return false
    if (unit === 'hour') return true
    if (parts['hour'] !== '00') return false
    return unit === 'day' || (unit === 'week' ? parts['weekday'] === 'Mon' : parts['day'] === '1')
  }
  const MINUTE_MS = 60_000
  let border = Math.floor(atMs / MINUTE_MS) * MINUTE_MS + MINUTE_MS
  while (!begins(border)) border += MINUTE_MS
  return border
}
