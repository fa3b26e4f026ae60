import { expect, test } from 'vitest'
import { RedisPlans } from '../../../../../proxy/limits/store/redis/plans.ts'
import type { RedisClient } from '../../../../../proxy/limits/store/redis/run-script.ts'
import { recordLog } from '../../../../support/limiter/limiters.ts'

const keys = ['ip:192.0.2.1', 'ip:192.0.2.2'].map((client) => `sluice:1:{${client}}:plan:ip`)

/** Redis has two keys, and the second one is read as given. */
function plansWith(readSecond: () => Promise<string | null>) {
  const redis = {
    scan: () => Promise.resolve(['0', keys]),
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
