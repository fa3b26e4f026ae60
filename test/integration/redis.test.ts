import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce, decideForEach } from '../support/limiter/decisions.ts'
import type { RunningLimiter } from '../support/limiter/limiters.ts'
import { atSomePace } from '../support/limiter/paces.ts'
import { openAnsweringLimiter } from '../support/redis/redis-limiters.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import type { RedisServer } from '../support/redis/redis-server.ts'
import { eventually } from '../support/wait/eventually.ts'

let server: RedisServer
let redis: Redis
let limiter: RunningLimiter

const login = makePolicy('login', 3, 60_000)

// This file has its own server, because it counts commands and flushes scripts, which affects the whole server.
beforeAll(async () => {
  server = await startRedisServer()
  redis = new Redis(server.url)
})
afterAll(() => redis.disconnect())

beforeEach(async () => {
  await redis.flushall()
  await redis.config('RESETSTAT')
  limiter = await openAnsweringLimiter(server.url)
})

async function callsOf(command: string): Promise<number> {
  const stats = await redis.info('commandstats')
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
}

/**
 * Waits for the first look at the list of resets, a quarter of a second after the start, which clears the cache of clients over the limit.
 */
async function waitForFirstLook(): Promise<void> {
  await eventually('the list of resets was asked for', async () => (await callsOf('lindex')) > 0)
  // Redis answers commands in order, so the look has its answer once this decision has.
  await limiter.decide(chargeAll(newClient(), [login]))
}

describe('the keys in Redis', () => {
  test('the keys in Redis are plain integers that expire with the window, named by client, policy and window', async () => {
    await limiter.decide(chargeAll('2001:db8::/64', [login]))
    await limiter.decide(chargeAll('2001:db8::/64', [login]))
    expect(await redis.keys('sluice:1:{*')).toEqual(['sluice:1:{2001:db8::/64}:login:60000'])
    expect(await redis.get('sluice:1:{2001:db8::/64}:login:60000')).toBe('2')
    expect(await redis.pttl('sluice:1:{2001:db8::/64}:login:60000')).toBeGreaterThan(59_000)
  })

  test('the keys in Redis all have an expiry, whatever was asked', async () => {
    const client = newClient()
    const policies = [
      login,
      makePolicy('wide', 5, 90_061),
      makePolicy('none', 0, 30_000),
      makePolicy('seen', 1, 45_000, { mode: 'shadow' }),
    ]
    for (const policy of policies) await decideAtOnce([limiter], 8, chargeAll(client, [policy]))
    await decideAtOnce([limiter], 8, chargeAll(newClient(), policies))
    const keys = await redis.keys('*')
    expect(keys.length).toBeGreaterThan(3)
    for (const key of keys) expect(await redis.pttl(key), key).toBeGreaterThan(0)
  })

  test('a key in Redis that has lost its expiry gets one', async () => {
    await redis.set('sluice:1:{ip:x}:login:60000', '1')
    expect(await limiter.decide(chargeAll('ip:x', [login]))).toMatchObject({
      states: [{ remaining: 1, resetMs: 60_000 }],
    })
    expect(await redis.pttl('sluice:1:{ip:x}:login:60000')).toBeGreaterThan(59_000)
  })

  test('the keys in Redis do not count refused requests', async () => {
    const client = newClient()
    const decisions = await decideAtOnce([limiter], 50, chargeAll(client, [login]))
    expect(countAllowed(decisions)).toBe(3)
    expect(await redis.get(`sluice:1:{${client}}:login:60000`)).toBe('3')
  })
})

describe('a changed table', () => {
  test('a changed quota takes effect at once on running counters', async () => {
    const client = newClient()
    for (let i = 0; i < 4; i++) await limiter.decide(chargeAll(client, [login]))
    const raised = chargeAll(client, [makePolicy('login', 10, 60_000)])
    expect(await limiter.decide(raised)).toMatchObject({ outcome: 'allowed', states: [{ remaining: 6 }] })
    const lowered = chargeAll(client, [makePolicy('login', 2, 60_000)])
    expect(await limiter.decide(lowered)).toMatchObject({ outcome: 'refused', states: [{ remaining: 0 }] })
  })

  test('a changed window starts new counters', async () => {
    const client = newClient()
    for (let i = 0; i < 4; i++) await limiter.decide(chargeAll(client, [login]))
    const longer = chargeAll(client, [makePolicy('login', 3, 90_000)])
    expect(await limiter.decide(longer)).toMatchObject({ outcome: 'allowed', states: [{ remaining: 2 }] })
  })
})

describe('the commands to Redis', () => {
  test('all requests of one turn of the event loop share one command', async () => {
    await limiter.decide(chargeAll(newClient(), [login]))
    await redis.config('RESETSTAT')
    const wide = makePolicy('wide', 1000, 60_000)
    await decideForEach(limiter, Array.from({ length: 50 }, newClient), [login, wide])
    expect(await callsOf('evalsha')).toBe(1)
    expect(await callsOf('incr')).toBe(100)
    expect(limiter.telemetry).toMatchObject({ answers: 2, failures: 0 })
  })

  test('very many requests of one turn go to Redis in several commands', async () => {
    await limiter.decide(chargeAll(newClient(), [login]))
    await redis.config('RESETSTAT')
    const decisions = await decideForEach(limiter, Array.from({ length: 1000 }, newClient), [login])
    expect(countAllowed(decisions)).toBe(1000)
    expect(await callsOf('evalsha')).toBe(4)
  })

  test('no command is sent to Redis for a client known to be over the limit, until its window ends', async () => {
    await atSomePace(async (pace) => {
      const client = newClient()
      const brief = makePolicy('brief', 1, 1000 * pace)
      await limiter.decide(chargeAll(client, [brief]))
      await limiter.decide(chargeAll(client, [brief]))
      await redis.config('RESETSTAT')
      const refused = limiter.decide(chargeAll(client, [brief]))
      expect(refused).not.toBeInstanceOf(Promise)
      expect(refused).toMatchObject({ outcome: 'refused', refusedBy: { name: 'brief' } })
      expect(await callsOf('evalsha')).toBe(0)
      // The window began when the first request was answered, less than a millisecond ago, and timers may fire early.
      await sleep(brief.windowMs + 50)
      expect(await limiter.decide(chargeAll(client, [brief]))).toMatchObject({ outcome: 'allowed' })
    })
  })

  test('Redis is asked again about a client that the cache has dropped', async () => {
    const client = newClient()
    await waitForFirstLook()
    for (let i = 0; i < 4; i++) await limiter.decide(chargeAll(client, [login]))
    await redis.del(`sluice:1:{${client}}:login:60000`)
    expect(await limiter.decide(chargeAll(client, [login]))).toMatchObject({ outcome: 'refused' })
    limiter.forget('login', client)
    expect(await limiter.decide(chargeAll(client, [login]))).toMatchObject({ outcome: 'allowed' })
  })

  test('a command counts once when Redis has forgotten the scripts', async () => {
    const client = newClient()
    const many = makePolicy('many', 1000, 60_000)
    for (let round = 0; round < 5; round++) {
      await redis.script('FLUSH')
      await decideAtOnce([limiter], 10, chargeAll(client, [many]))
    }
    expect(await redis.get(`sluice:1:{${client}}:many:60000`)).toBe('50')
    expect(limiter.telemetry.failures).toBe(0)
  })
})

describe('a key that holds no counter', () => {
  test('a broken counter fails its own requests only, and is logged once', async () => {
    const bad = newClient()
    const good = newClient()
    const wide = makePolicy('wide', 100, 60_000)
    await redis.rpush(`sluice:1:{${bad}}:login:60000`, 'a list')
    await redis.set(`sluice:1:{${bad}}:wide:60000`, '5', 'PX', 60_000)
    const before = limiter.telemetry.failures
    for (let i = 0; i < 5; i++) {
      const [broken, sound] = await decideForEach(limiter, [bad, good], [wide, login])
      // Local counters decide, as `onStoreError` says.
      expect(broken).toMatchObject(i < 3 ? { outcome: 'allowed' } : { outcome: 'refused' })
      expect(sound).toMatchObject(i < 3 ? { outcome: 'allowed' } : { outcome: 'refused' })
    }
    expect(await redis.get(`sluice:1:{${good}}:wide:60000`)).toBe('3')
    // The 5 from before, and the 3 that local counters admitted.
    await eventually('the other counter has been repaid', async () =>
      expect(await redis.get(`sluice:1:{${bad}}:wide:60000`)).toBe('8'),
    )
    expect(limiter.storeState()).toBe('available')
    expect(limiter.telemetry.failures).toBe(before)
    const errors = limiter.logLines.filter(({ level }) => level >= 50)
    expect(errors.map(({ msg }) => msg)).toEqual([
      'a Redis key matching this pattern does not hold a counter: find and delete it',
      'a Redis key matching this pattern does not hold a counter: find and delete it',
    ])
    expect(JSON.stringify(errors)).not.toContain(bad)
  })

  test('a key that holds no counter is answered 503 where the rule is closed, and nothing was counted', async () => {
    const client = newClient()
    const strict = makePolicy('strict', 3, 60_000, { onStoreError: 'closed' })
    await redis.set(`sluice:1:{${client}}:strict:60000`, 'no number', 'PX', 60_000)
    expect(await limiter.decide(chargeAll(client, [strict]))).toEqual({
      outcome: 'unavailable',
      uncertain: false,
    })
  })
})
