import { expect, test } from 'vitest'
import { choosePlans } from '../../../../proxy/limits/plans/choose-plans.ts'
import type { ReadClaims } from '../../../../proxy/limits/keys/tokens/token-reader.ts'
import type { Policy } from '../../../../proxy/policy.ts'
import { makePolicy } from '../../../support/limiter/charges.ts'

const plans = { claim: 'plan', quotas: { trial: 5, free: 20, pro: 1000 } }
const api = makePolicy('api', 10, 60_000, { plans })
const plain = makePolicy('plain', 7, 60_000)
const ignored = { onPlan: () => undefined }

function choose(claims: ReadClaims | undefined, policies: readonly Policy[] = [api]) {
  const read: string[] = []
  const chosen = choosePlans(policies, claims, { onPlan: (_policy, plan) => read.push(plan) })
  return { read, chosen: chosen.map(({ quota, plan }) => [plan, quota]) }
}

const tokens = (...named: (string | undefined)[]): ReadClaims =>
  named.map((plan) => new Map(plan === undefined ? [] : [['plan', plan]]))

test.each<[string, ReadClaims | undefined, string, number]>([
  ['no token', undefined, 'none', 10],
  ['a token without the claim', tokens(undefined), 'none', 10],
  ['a plan', tokens('pro'), 'pro', 1000],
  ['a plan below the others', tokens('trial'), 'trial', 5],
  ['a plan that the rule does not have', tokens('gold'), 'unknown', 10],
  ['a plan in other letters', tokens('Pro'), 'unknown', 10],
  ['a name that every object has', tokens('constructor'), 'unknown', 10],
  ['a name of the prototype', tokens('__proto__'), 'unknown', 10],
  ['the names of metrics', tokens('unknown'), 'unknown', 10],
  ['two tokens: the lower quota', tokens('pro', 'free'), 'free', 20],
  ['two tokens: one without a plan', tokens('pro', undefined), 'none', 10],
  ['two tokens: one with an unknown plan', tokens('gold', 'pro'), 'unknown', 10],
  ['too many tokens: the lowest quota of all', 'too-many', 'trial', 5],
])('%s', (_, claims, plan, quota) => {
  const { read, chosen } = choose(claims)
  expect(read).toEqual([plan])
  expect(chosen).toEqual([[plan === 'none' || plan === 'unknown' ? undefined : plan, quota]])
})

test("only policies with plans change, and a client's overrides stay", () => {
  const override = { ...api, quota: 3, override: 0 }
  const { read, chosen } = choose(tokens('pro'), [plain, override, api])
  expect(read).toEqual(['pro'])
  expect(chosen).toEqual([
    [undefined, 7],
    [undefined, 3],
    ['pro', 1000],
  ])
})

test('a plan has the same policy each time, as clients over the limit are known by it', () => {
  const [one] = choosePlans([api], tokens('pro'), ignored)
  const [other] = choosePlans([api], tokens('pro'), ignored)
  expect(one).toBe(other)
  const unchanged = [plain]
  expect(choosePlans(unchanged, tokens('pro'), ignored)).toBe(unchanged)
})

test('a token bucket has as many at once as the plan allows', () => {
  const bucket = makePolicy('bucket', 20, 2_000, { algorithm: 'token-bucket', averageWindowMs: 1_000, plans })
  const [planned] = choosePlans([bucket], tokens('pro'), ignored)
  expect(planned).toMatchObject({ quota: 1000, windowMs: 1_000, sharedWindowMs: 2_000 })
})
