import { beforeEach, describe, expect, test } from 'vitest'
import type { Redis } from 'ioredis'
import type { PolicyState } from '../../proxy/limits/limiter.ts'
import type { Policy } from '../../proxy/policy.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import type { RunningLimiter } from '../support/limiter/limiters.ts'
import { openAnsweringLimiter, openRedis } from '../support/redis/redis-limiters.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { wallClockMs } from '../support/calendar/wall-clock.ts'

/*
 * Redis's clock is set back by an hour, or a replica whose clock is behind takes over. Earlier requests must not count for that hour. The
 * tests put keys with future times into Redis, as such a change leaves them.
 */

const windowMs = 20_000
const setBackMs = 3_600_000

let limiter: RunningLimiter
let operator: Redis

beforeEach(async () => {
  const url = await freshRedis()
  limiter = await openAnsweringLimiter(url)
  operator = openRedis(url)
})

const kinds: readonly (readonly [string, Partial<Policy>, string, (key: string) => Promise<unknown>])[] = [
  ['a fixed window', {}, '', keepExpiry],
  ['units of a fixed window', { cost: { reserve: 1 } }, '', keepExpiry],
  [
    'a sliding window',
    { algorithm: 'sliding' },
    ':sliding',
    async (key) => {
      const times = await operator.lrange(key, 0, -1)
      await operator.del(key)
      await operator.rpush(key, ...times.map((time) => Number(time) + setBackMs * 1000))
      await operator.pexpire(key, windowMs + setBackMs)
    },
  ],
  [
    'a token bucket',
    { algorithm: 'token-bucket' },
    ':bucket',
    async (key) => {
      const [debt, changed, since, back] = (await operator.get(key))?.split(' ') ?? []
      const later = (time: string | undefined): number => Number(time) + setBackMs * 1000
      await operator.set(
        key,
        [debt, later(changed), later(since), back].join(' '),
        'PX',
        windowMs + setBackMs,
      )
    },
  ],
]

async function keepExpiry(key: string): Promise<unknown> {
  return operator.pexpire(key, windowMs + setBackMs)
}

describe.for(kinds)(
  '%s counts no longer than before, if the clock is set back',
  ([, kind, suffix, setBack]) => {
    test.for([1, 4, 5])('after %i of 5 requests the counter ends no later than before', async (requests) => {
      const policy = makePolicy('clock', 5, windowMs, kind)
      const client = newClient()
      const decide = async (): Promise<PolicyState | undefined> => {
        const decision = await limiter.decide(chargeAll(client, [policy]))
        return decision.outcome === 'unavailable' ? undefined : decision.states[0]
      }
      const key = `sluice:1:{${client}}:clock:${windowMs}${suffix}`
      for (let i = 0; i < requests; i++) await decide()
      await setBack(key)
      const state = await decide()
      expect(state?.remaining).toBe(Math.max(0, 4 - requests))
      expect(state?.exceeded).toBe(requests === 5)
      expect(state?.resetMs).toBeLessThanOrEqual(windowMs)
      // The limiter has cached the refusal. What matters is how long Redis keeps its key. A key of a sliding window expires at the whole
      // millisecond after its last request has left.
      expect(await operator.pttl(key)).toBeLessThanOrEqual(windowMs + 1)
      expect(await operator.pttl(key)).toBeGreaterThan(0)
      if (suffix === ':sliding')
        for (const time of await operator.lrange(key, 0, -1))
          expect(Number(time)).toBeLessThanOrEqual((wallClockMs() + windowMs) * 1000)
    })
  },
)
