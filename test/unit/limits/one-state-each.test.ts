import { expect, test } from 'vitest'
import { createLimitHeaders, oneStateEach } from '../../../proxy/limits/replies.ts'
import type { PolicyState } from '../../../proxy/limits/limiter.ts'
import type { Policy } from '../../../proxy/policy.ts'
import { makePolicy } from '../../support/limiter/charges.ts'

const a = makePolicy('a', 5, 60_000)
const b = makePolicy('b', 5, 60_000)

function state(policy: Policy, remaining: number, resetMs = 1000, exceeded = false): PolicyState {
  return { policy, remaining, resetMs, exceeded }
}

test('states of one client for each policy stay unchanged', () => {
  const states = [state(a, 1), state(b, 2)]
  expect(oneStateEach(states)).toBe(states)
})

test('the state with the least quota left is reported if a request counted for several clients under one policy', () => {
  const least = state(a, 1, 2000)
  const states = [state(b, 3), state(a, 2), state(a, 1), least, state(a, 4)]
  expect(oneStateEach(states)).toEqual([states[0], least])
  expect(oneStateEach([state(a, 0, 9000), state(a, 0, 1000, true)])).toEqual([state(a, 0, 1000, true)])
  expect(createLimitHeaders(['ietf'])(states)).toEqual([
    ...['ratelimit-policy', '"b";q=5;w=60, "a";q=5;w=60'],
    ...['ratelimit', '"b";r=3;t=1, "a";r=1;t=2'],
  ])
})

test('clients with different quotas under one policy are reported once', () => {
  const more = makePolicy('a', 9, 60_000)
  expect(createLimitHeaders(['ietf'])([state(more, 6), state(a, 2), state(b, 3)])).toEqual([
    ...['ratelimit-policy', '"a";q=5;w=60, "b";q=5;w=60'],
    ...['ratelimit', '"a";r=2;t=1, "b";r=3;t=1'],
  ])
})
