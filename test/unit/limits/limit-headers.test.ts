import { expect, test } from 'vitest'
import { createLimitHeaders } from '../../../proxy/limits/replies.ts'
import type { PolicyState } from '../../../proxy/limits/limiter.ts'
import type { Policy } from '../../../proxy/policy.ts'
import { makePolicy } from '../../support/limiter/charges.ts'

const wide = makePolicy('wide', 100, 60_000)
const narrow = makePolicy('narrow', 5, 10_000)
const soft = makePolicy('soft', 60, 3_600_000, { over: { route: 'page' } })
const shadow: Policy = { ...makePolicy('dry', 1, 1000), mode: 'shadow' }
const exports: Policy = { ...makePolicy('exports', 2, 15_000), algorithm: 'concurrency' }

const state = (policy: Policy, remaining: number, resetMs: number, exceeded = false): PolicyState => ({
  policy,
  remaining,
  resetMs,
  exceeded,
})

test.each<[string, PolicyState[], string]>([
  ['one policy, its reset rounded up', [state(wide, 99, 59_001)], '100 99 60'],
  ['the least left', [state(wide, 7, 60_000), state(narrow, 4, 10_000)], '5 4 10'],
  ['whatever the order', [state(narrow, 4, 10_000), state(wide, 3, 60_000)], '100 3 60'],
  ['as little: the one that lasts longer', [state(wide, 4, 60_000), state(narrow, 4, 10_000)], '100 4 60'],
  // A request of several units is refused although some units are left.
  ['what refuses', [state(narrow, 1, 10_000), state(wide, 3, 20_000, true)], '100 3 20'],
  ['of two that refuse', [state(narrow, 0, 10, true), state(wide, 0, 20_000, true)], '100 0 20'],
  [
    'never one with a route if another refuses',
    [state(soft, 0, 3_600_000, true), state(narrow, 2, 10_000, true)],
    '5 2 10',
  ],
  [
    'one with a route if no other is tighter',
    [state(soft, 0, 3_600_000, true), state(narrow, 2, 10_000)],
    '60 0 3600',
  ],
  ['never a shadow', [state(shadow, 0, 1000, true), state(narrow, 5, 10_000)], '5 5 10'],
  ['at least a second', [state(narrow, 0, 0.5, true)], '5 0 1'],
])('x-ratelimit: %s', (_name, states, expected) => {
  const [limit, remaining, reset] = expected.split(' ')
  expect(createLimitHeaders(['x-ratelimit'])(states)).toEqual([
    ...['x-ratelimit-limit', limit, 'x-ratelimit-remaining', remaining, 'x-ratelimit-reset', reset],
  ])
})

test('x-ratelimit: requests in flight have no reset, and shadows alone no headers', () => {
  const headers = createLimitHeaders(['x-ratelimit'])
  expect(headers([state(exports, 0, 15_000, true)])).toEqual([
    ...['x-ratelimit-limit', '2', 'x-ratelimit-remaining', '0'],
  ])
  expect(headers([state(shadow, 0, 1000, true)])).toEqual([])
})

test('w is the length of the current window for calendar rules, and constant for other rules', () => {
  const calendar = { unit: 'day', timezone: 'Europe/Berlin' } as const
  const daily = makePolicy('daily', 7, 86_400_000, { algorithm: 'calendar', calendar })
  let atMs = Date.parse('2027-03-28T12:00Z')
  const headers = createLimitHeaders(['ietf'], false, () => atMs)
  const policies = (): string | undefined => headers([state(daily, 3, 1), state(wide, 1, 1)])[1]
  expect(policies()).toBe('"daily";q=7;w=82800, "wide";q=100;w=60')
  atMs = Date.parse('2027-03-28T22:00Z')
  expect(policies()).toBe('"daily";q=7;w=86400, "wide";q=100;w=60')
})

test('only the configured formats are sent', () => {
  const states = [state(narrow, 4, 10_000)]
  const names = (headers: string[]): string[] => headers.filter((_, index) => index % 2 === 0)
  const ietf = ['ratelimit-policy', 'ratelimit']
  const x = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']
  expect(names(createLimitHeaders(['ietf'])(states))).toEqual(ietf)
  expect(names(createLimitHeaders(['x-ratelimit', 'ietf'])(states))).toEqual([...ietf, ...x])
  expect(createLimitHeaders([])(states)).toEqual([])
})
