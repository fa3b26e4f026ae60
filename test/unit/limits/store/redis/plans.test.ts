import { expect, test } from 'vitest'
import { calendarUnits } from '../../../../../proxy/limits/algorithms/calendar/calendar.ts'
import { algorithms } from '../../../../../proxy/limits/algorithms/registry.ts'
import { createDescriber, keyOf, leasedKeyOf } from '../../../../../proxy/limits/store/redis/keys.ts'
import { RedisPlans } from '../../../../../proxy/limits/store/redis/plans.ts'
import type { RedisClient } from '../../../../../proxy/limits/store/redis/run-script.ts'
import { makePolicy } from '../../../../support/limiter/charges.ts'
import { recordLog } from '../../../../support/limiter/recordings.ts'

const keys = ['ip:192.0.2.1', 'ip:192.0.2.2'].map((client) => `sluice:1:{${client}}:plan:ip`)

/** Redis has the keys in `others`, and two more. The second of these is read with `readSecond`. */
function plansWith(readSecond: () => Promise<string | null>, others: readonly string[] = []) {
  const redis = {
    scan: () => Promise.resolve(['0', [...others, ...keys]]),
    get: (key: string) => (key === keys[1] ? readSecond() : Promise.resolve('pro')),
  }
  const { log } = recordLog()
  return new RedisPlans({
    redis: redis as unknown as RedisClient,
    keyPrefix: 'sluice:1',
    isAnswering: () => true,
    areAllAnswering: () => true,
    timeoutMs: 5_000,
    log,
  })
}

const first = { partitionKey: 'ip:192.0.2.1', keyName: 'ip', plan: 'pro' }

test.each([
  ['a key that holds something else', () => Promise.reject(new Error('WRONGTYPE Operation against a key'))],
  ['a key that was deleted meanwhile', () => Promise.resolve(null)],
])('the list of plans leaves out %s', async (_, readSecond) => {
  expect(await plansWith(readSecond).list(10)).toEqual({ plans: [first], isAll: true })
})

test('a list of plans during which the connection is lost is not a shorter list', async () => {
  const plans = plansWith(() => Promise.reject(new Error('Connection is closed.')))
  expect(await plans.list(10)).toBe('unavailable')
})

test('counters of a rule that is named plan are no plans', async () => {
  const describe = createDescriber('sluice:1')
  const policies = [
    ...algorithms.flatMap(({ name }) =>
      calendarUnits.map((unit) => makePolicy('plan', 5, 60_000, { algorithm: name, calendar: { unit } })),
    ),
    // Buckets with `burst`.
    ...[4000 / 3, 1e-6, 1e-9].map((windowMs) =>
      makePolicy('plan', 4, windowMs, { algorithm: 'token-bucket' }),
    ),
  ]
  const counters = policies.flatMap((policy) => {
    const described = describe(policy)
    return [keyOf(described, 'ip:192.0.2.1'), leasedKeyOf(described, 'ip:192.0.2.1')]
  })
  const plans = plansWith(() => Promise.resolve('pro'), counters)
  const second = { ...first, partitionKey: 'ip:192.0.2.2' }
  expect(await plans.list(2)).toEqual({ plans: [first, second], isAll: true })
})
