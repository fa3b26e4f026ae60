import { describe, expect, test } from 'vitest'
import { chargeOverLimit, reportDecision } from '../../../proxy/server/exchange-report.ts'
import type { Decision, PolicyState } from '../../../proxy/limits/limiter.ts'
import type { Policy } from '../../../proxy/policy.ts'
import { chargeAll, makePolicy } from '../../support/limiter/charges.ts'

const a = makePolicy('a', 1, 1000)
const b = makePolicy('b', 1, 1000)
const c = makePolicy('c', 1, 1000)
const elsewhere = makePolicy('elsewhere', 1, 1000, { over: { route: 'page' } })

const stateOf = (policy: Policy, exceeded = false): PolicyState => ({
  policy,
  exceeded,
  remaining: 0,
  resetMs: 1,
})
const allowed = (states: PolicyState[], withoutStore?: true): Decision => ({
  outcome: 'allowed',
  states,
  ...(withoutStore && { withoutStore }),
})

test.each<[string, Decision, string[], string[] | undefined]>([
  [
    'all counted',
    allowed([stateOf(a), stateOf(b), stateOf(c)]),
    ['a allowed', 'b allowed', 'c allowed'],
    undefined,
  ],
  ['one policy twice', allowed([stateOf(a), stateOf(a, true)]), ['a shadow', 'b open', 'c open'], ['a']],
  [
    'a shadow',
    allowed([stateOf(a), stateOf(b, true), stateOf(c)]),
    ['a allowed', 'b shadow', 'c allowed'],
    ['b'],
  ],
  [
    'local, with a shadow, and open',
    allowed([stateOf(a), stateOf(c, true)], true),
    ['a local', 'c shadow', 'b open'],
    ['c'],
  ],
  [
    'sent to another route',
    allowed([stateOf(a), stateOf(elsewhere, true), stateOf(b), stateOf(c)]),
    ['a allowed', 'elsewhere routed', 'b allowed', 'c allowed'],
    undefined,
  ],
  ['open', allowed([], true), ['a open', 'b open', 'c open'], undefined],
  ['refused', { outcome: 'refused', refusedBy: b, states: [stateOf(b, true)] }, ['b refused'], undefined],
  [
    'closed',
    { outcome: 'unavailable', uncertain: false },
    ['a unavailable', 'b unavailable', 'c unavailable'],
    undefined,
  ],
])('%s', (_, decision, reported, shadows) => {
  const told: string[] = []
  const telemetry = {
    decided: (policy: Policy, outcome: string) => told.push(`${policy.name} ${outcome}`),
    nearLimit: () => undefined,
  }
  expect(reportDecision(telemetry, decision, chargeAll('ip:1', [a, b, c]))).toEqual(shadows)
  expect(told).toEqual(reported)
})

test.each([
  [10, 9, false],
  [10, 2, false],
  [10, 1, true],
  [10, 0, true],
  [5, 1, false],
  [5, 0, true],
  [1, 0, true],
  [999, 200, false],
  [999, 199, true],
])('a request under %i with %i left is near the limit: %s', (quota, remaining, isNear) => {
  const policy = makePolicy('near', quota, 1000)
  const near: string[] = []
  const telemetry = { decided: () => undefined, nearLimit: ({ name }: Policy) => near.push(name) }
  reportDecision(telemetry, allowed([{ ...stateOf(policy), remaining }]), chargeAll('ip:1', [policy]))
  expect(near).toEqual(isNear ? ['near'] : [])
  const over = allowed([{ ...stateOf(policy, true), remaining: 0 }])
  reportDecision(telemetry, over, chargeAll('ip:1', [policy]))
  expect(near).toHaveLength(isNear ? 1 : 0)
})

describe('the partition key that a log line is about', () => {
  const charges = [a, b, b, c].map((policy, at) => ({ policy, partitionKey: `key ${at}` }))
  const refusedBy = (policy: Policy, states: PolicyState[]): Decision => ({
    outcome: 'refused',
    refusedBy: policy,
    states,
  })

  test.each<[string, Decision, string | undefined]>([
    [
      'is that of the rule that refuses, though another is over its limit too',
      refusedBy(c, [stateOf(a, true), stateOf(b), stateOf(b), stateOf(c, true)]),
      'key 3',
    ],
    [
      'is the one of several clients of a rule that is over the limit',
      refusedBy(b, [stateOf(a), stateOf(b), stateOf(b, true), stateOf(c)]),
      'key 2',
    ],
    [
      'is found where rules before it have no state',
      refusedBy(c, [stateOf(b), stateOf(b), stateOf(c, true)]),
      'key 3',
    ],
    [
      'is found under a policy whose quota was changed for the client',
      refusedBy({ ...b, quota: 7 }, [stateOf(a), stateOf({ ...b, quota: 7 }, true), stateOf(b), stateOf(c)]),
      'key 1',
    ],
    [
      'is that of the first rule over its limit, where none refuses',
      allowed([stateOf(a), stateOf(b), stateOf(b, true), stateOf(c, true)]),
      'key 2',
    ],
    ['is left out within all limits', allowed(charges.map(({ policy }) => stateOf(policy))), undefined],
    ['is left out where nothing was counted', { outcome: 'unavailable', uncertain: true }, undefined],
  ])('%s', (_, decision, key) => {
    expect(chargeOverLimit(decision, charges)?.partitionKey).toBe(key)
  })
})
