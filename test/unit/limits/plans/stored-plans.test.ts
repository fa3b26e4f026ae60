import { expect, test } from 'vitest'
import { createMemoryPlans } from '../../../../proxy/limits/plans/stored-plans.ts'
import { readLateAnswers } from '../../../../proxy/limits/store/late-answers.ts'
import type { Policy } from '../../../../proxy/policy.ts'
import type { PartitionPart, SinglePart } from '../../../../proxy/policy/partition.ts'
import { planKeyName } from '../../../../proxy/limits/plans/plan-key-name.ts'
import { chargeAll, makePolicy } from '../../../support/limiter/charges.ts'

const plans = { quotas: { free: 2, pro: 50 } }
const bucket = makePolicy('bucket', 1, 3_600_000, { algorithm: 'token-bucket', plans })
const usual = makePolicy('usual', 1, 3_600_000)

test('a full table refuses another plan, and takes changes of those it has', async () => {
  const table = createMemoryPlans(2)
  const [a, b, c] = ['a', 'b', 'c'].map((partitionKey) => ({ partitionKey, keyName: 'header:x-api-key' }))
  if (!a || !b || !c) throw new RangeError('three clients')
  expect(await table.set(a, 'pro')).toBe('done')
  expect(await table.set(b, 'pro')).toBe('done')
  expect(await table.set(c, 'pro')).toBe('full')
  expect(await table.get(c)).toEqual({})
  expect(await table.set(a, 'free')).toBe('done')
  expect(await table.get(a)).toEqual({ plan: 'free' })
  expect(await table.set(c, undefined)).toBe('absent')
  expect(await table.set(b, undefined)).toBe('done')
  expect(await table.set(c, 'pro')).toBe('done')
  expect(await table.list(1)).toEqual({ plans: [{ ...a, plan: 'free' }], isAll: false })
})

test('the same value of another key is another client for plans', async () => {
  const table = createMemoryPlans()
  const policyBy = (name: string, ...parts: SinglePart[]): Policy => ({ ...bucket, name, partition: parts })
  const signed = policyBy('signed', { kind: 'jwt', name: 'sub' })
  const claimed = policyBy('claimed', { kind: 'header', name: 'x-user' })
  await table.set({ partitionKey: 'h:4711', keyName: planKeyName(signed) }, 'pro')
  const [one, other] = table.apply(chargeAll('h:4711', [signed, claimed]))
  expect([one?.policy.quota, other?.policy.quota]).toEqual([50, 1])
})

test.each<[string, readonly PartitionPart[]]>([
  ['header:x-api-key', [{ kind: 'header', name: 'x-api-key' }]],
  ['ip/24/48', [{ kind: 'network', ipv4: 24, ipv6: 48 }]],
  ['jwt:sub,host', [{ kind: 'jwt', name: 'sub' }, { kind: 'host' }]],
  ['jwt:sub|ip', [{ kind: 'first', of: [{ kind: 'jwt', name: 'sub' }, { kind: 'ip' }] }]],
])('the key of plans is %s', (name, partition) => {
  expect(planKeyName({ partition })).toBe(name)
})

test('a late answer is about the policy of the plan, which says the size of a unit of its bucket', () => {
  const requests = [chargeAll('a', [usual, bucket]), chargeAll('b', [bucket]), chargeAll('c', [bucket])]
  const decidedWithout = requests.map(() => ({ outcome: 'unavailable', uncertain: true }) as const)
  const reply = [0, 1, 49, 1, 'READONLY', 0, 1, 1, 0, 'ticket a', '', 'ticket c', ['pro', '', 'free']]
  const late = readLateAnswers({ requests, decidedWithout, chargeCount: 4 }, reply, 100)
  expect(
    late.map(({ charge: { policy, partitionKey }, ticket }) => [partitionKey, policy.quota, ticket]),
  ).toEqual([
    ['a', 1, undefined],
    ['a', 50, 'ticket a'],
    ['c', 2, 'ticket c'],
  ])
})
