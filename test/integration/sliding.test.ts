import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import type { Redis } from 'ioredis'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { PendingCharge } from '../../proxy/limits/store/memory/limiter.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import { waitUntilAnswering, type RunningLimiter } from '../support/limiter/limiters.ts'
import { expiryMs, redisNowUs } from '../support/redis/expiry.ts'
import { runNode } from '../support/gateway/process.ts'
import { countInRedis } from '../support/redis/count-in-redis.ts'
import { openAnsweringLimiter, openRedis } from '../support/redis/redis-limiters.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import type { RedisServer } from '../support/redis/redis-server.ts'
import { runs } from '../support/random/runs.ts'
import { eventually } from '../support/wait/eventually.ts'

/* Sliding windows in Redis. This file has its own server, because it counts commands and stops the server. */

let server: RedisServer
let redis: Redis
let limiter: RunningLimiter

const mail = makePolicy('mail', 3, 60_000, { algorithm: 'sliding' })
const wide = makePolicy('wide', 100, 60_000)

beforeAll(async () => {
  server = await startRedisServer()
})
beforeEach(async () => {
  redis = openRedis(server.url)
  await redis.flushall()
  limiter = await openAnsweringLimiter(server.url)
})

const nowUs = (): Promise<number> => redisNowUs(redis)

async function timesOf(client: string, policy = mail): Promise<number[]> {
  const times = await redis.lrange(`sluice:1:{${client}}:${policy.name}:${policy.windowMs}:sliding`, 0, -1)
  return times.map(Number)
}

/** Puts admissions of these ages into Redis. */
async function admitEarlier(client: string, agesMs: readonly number[], policy = mail): Promise<void> {
  const key = `sluice:1:{${client}}:${policy.name}:${policy.windowMs}:sliding`
  const atUs = await nowUs()
  await redis.rpush(key, ...agesMs.map((ageMs) => atUs - ageMs * 1000))
  await redis.pexpire(key, policy.windowMs)
}

describe('the keys of sliding windows in Redis', () => {
  test('the keys of sliding windows in Redis are lists of times that expire with the last one, without refused requests', async () => {
    const client = newClient()
    const fromUs = await nowUs()
    expect(countAllowed(await decideAtOnce([limiter], 50, chargeAll(client, [mail])))).toBe(3)
    const untilUs = await nowUs()
    expect(await redis.keys('sluice:1:{*')).toEqual([`sluice:1:{${client}}:mail:60000:sliding`])
    const times = await timesOf(client)
    expect(times).toHaveLength(3)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    for (const timeUs of times) {
      expect(timeUs).toBeGreaterThanOrEqual(fromUs)
      expect(timeUs).toBeLessThanOrEqual(untilUs)
    }
    expect(await expiryMs(redis, `sluice:1:{${client}}:mail:60000:sliding`)).toBe(
      Math.ceil(((times.at(-1) ?? NaN) + 60_000_000) / 1000),
    )
  })

  test('the keys of sliding windows in Redis drop times that have left the window at the next request, be it one or thousands', async () => {
    const many = makePolicy('many', 10_000, 60_000, { algorithm: 'sliding' })
    for (const gone of [1, 2, 3, 777, 9_998]) {
      const client = newClient()
      await admitEarlier(client, [...Array.from({ length: gone }, (_, i) => 70_000 - i), 5_000, 4_000], many)
      expect(await limiter.decide(chargeAll(client, [many]))).toMatchObject({
        outcome: 'allowed',
        states: [{ remaining: 9_997 }],
      })
      expect(await timesOf(client, many)).toHaveLength(3)
    }
  })

  test('the keys of sliding windows in Redis are new if window or algorithm changed, and kept if the number of requests changed', async () => {
    const client = newClient()
    const decide = (changed: object) => limiter.decide(chargeAll(client, [{ ...mail, ...changed }]))
    await admitEarlier(client, [50_000, 40_000, 30_000])
    expect(await decide({})).toMatchObject({ outcome: 'refused' })
    expect(await decide({ windowMs: 90_000 })).toMatchObject({ states: [{ remaining: 2 }] })
    expect(await decide({ algorithm: 'fixed' })).toMatchObject({ states: [{ remaining: 2 }] })
    expect(await decide({ quota: 10 })).toMatchObject({ outcome: 'allowed', states: [{ remaining: 6 }] })

    // Four count now. One more is allowed when fewer than two count, so when the third has left.
    const lowered = await decide({ quota: 2 })
    expect(lowered).toMatchObject({ outcome: 'refused', states: [{ remaining: 0 }] })
    const leftMs = lowered.outcome === 'refused' ? lowered.states[0]?.resetMs : NaN
    expect(leftMs).toBeGreaterThan(29_000)
    expect(leftMs).toBeLessThanOrEqual(30_000)
    expect(await timesOf(client)).toHaveLength(4)
  })
})

test('a client known to be over the limit is refused without Redis until its oldest request leaves', async () => {
  const client = newClient()
  await admitEarlier(client, [59_500, 59_000, 1_000])
  expect(await limiter.decide(chargeAll(client, [mail]))).toMatchObject({ outcome: 'refused' })
  const again = limiter.decide(chargeAll(client, [mail]))
  expect(again).not.toBeInstanceOf(Promise)
  expect(again).toMatchObject({ outcome: 'refused', refusedBy: { name: 'mail' } })
  await eventually('the oldest has left the window', async () =>
    expect(await limiter.decide(chargeAll(client, [mail]))).toMatchObject({ outcome: 'allowed' }),
  )
  expect(await limiter.decide(chargeAll(client, [mail]))).toMatchObject({ outcome: 'refused' })
})

test.each([
  ['a number', 'set', '7'],
  ['a list of something else', 'rpush', 'words'],
] as const)(
  '%s at the key of a counter counts as a store error for the requests of that counter only',
  async (_what, command, value) => {
    const [bad, good] = [newClient(), newClient()]
    await redis.call(command, `sluice:1:{${bad}}:mail:60000:sliding`, value)
    const strict = chargeAll(bad, [wide, { ...mail, onStoreError: 'closed' }])
    const [broken, sound] = await Promise.all([
      limiter.decide(strict),
      limiter.decide(chargeAll(good, [wide, mail])),
    ])
    expect(broken).toEqual({ outcome: 'unavailable', uncertain: false })
    expect(sound).toMatchObject({ outcome: 'allowed' })
    expect(await redis.exists(`sluice:1:{${bad}}:wide:60000`)).toBe(0)
    expect(limiter.telemetry.failures).toBe(0)
    expect(limiter.logLines.filter(({ level }) => level >= 50)).toHaveLength(2)
  },
)

describe('requests admitted during an outage of Redis', () => {
  test('a request admitted during an outage of Redis is added with its age, so that no span has more than the rule allows from each gateway', async () => {
    // The limiter reaches this timeout three times before it gives Redis up.
    const limiter = await openAnsweringLimiter(server.url, 1000)
    const client = newClient()
    await admitEarlier(client, [59_000])
    const instants: number[] = []
    const allowed = async (asked: number): Promise<number> => {
      instants.push(performance.now())
      const decisions = await decideAtOnce([limiter], asked, chargeAll(client, [mail]))
      instants.push(performance.now())
      return countAllowed(decisions)
    }
    await server.signal('SIGSTOP')
    try {
      await eventually('given up', () => {
        void limiter.decide(chargeAll(newClient(), [wide]))
        return limiter.storeState() === 'unavailable'
      })
      expect(await allowed(2)).toBe(2)
      await sleep(200)
      expect(await allowed(5)).toBe(1)
    } finally {
      await server.signal('SIGCONT')
    }
    const [firstFromMs = NaN, firstToMs = NaN, lastFromMs = NaN, lastToMs = NaN] = instants
    await eventually('back', () => limiter.telemetry.breaker.includes('closed'))
    await waitUntilAnswering(limiter)

    const ages = (await timesOf(client)).map((timeUs, _, times) => ((times.at(-1) ?? NaN) - timeUs) / 1000)
    // The earlier admission may have left the window by now. It is removed when the client asks again.
    if (ages.length === 4) expect(ages.shift()).toBeGreaterThan(mail.windowMs - 1000)
    expect(ages).toHaveLength(3)
    expect(ages[2]).toBe(0)
    for (const ageMs of ages.slice(0, 2)) {
      expect(ageMs).toBeGreaterThan(lastFromMs - firstToMs - 2)
      expect(ageMs).toBeLessThan(lastToMs - firstFromMs + 2)
    }
    expect(await limiter.decide(chargeAll(client, [mail]))).toMatchObject({ outcome: 'refused' })
  })

  const five = makePolicy('five', 5, 60_000, { algorithm: 'sliding' })
  const refundable = makePolicy('five', 5, 60_000, {
    algorithm: 'sliding',
    countStatus: [{ first: 401, last: 401 }],
  })

  /** Ages are relative to this instant, no matter how long a test takes. */
  let beganAtMs: number
  beforeEach(() => void (beganAtMs = performance.now()))

  function owe(client: string, agesMs: readonly number[]): PendingCharge {
    const counted = agesMs.map((ageMs) => beganAtMs - ageMs)
    return { policy: five, partitionKey: client, counted, endsAtMs: (counted.at(-1) ?? NaN) + five.windowMs }
  }

  /** The start of the test, by the clock of Redis. */
  function beginningUs(): Promise<number> {
    return eventually('Redis tells the time at once', async () => {
      const askedAtMs = performance.now()
      const atUs = await nowUs()
      expect(performance.now() - askedAtMs).toBeLessThan(200)
      return atUs - (askedAtMs - beganAtMs) * 1000
    })
  }

  /** Ages in whole seconds, which is their spacing in these tests. */
  async function agesInRedis(client: string): Promise<number[]> {
    const atUs = await beginningUs()
    return (await timesOf(client, five)).map((timeUs) => Math.round((atUs - timeUs) / 1_000_000) + 0)
  }

  test('requests admitted during an outage of Redis are inserted in order between existing ones, and twice as many of the newest are kept as the rule allows', async () => {
    const shared = countInRedis(openRedis(server.url))
    const client = newClient()
    await eventually('Redis has taken the admissions', async () =>
      expect(await shared.addOnce('first', [owe(client, [50_000, 30_000, 10_000])])).toBe(true),
    )
    expect(await agesInRedis(client)).toEqual([50, 30, 10])
    expect(await shared.addOnce('second', [owe(client, [40_000, 20_000])])).toBe(true)
    expect(await agesInRedis(client)).toEqual([50, 40, 30, 20, 10])
    expect(await shared.addOnce('third', [owe(client, [45_000, 5_000, 0])])).toBe(true)
    expect(await agesInRedis(client)).toEqual([50, 45, 40, 30, 20, 10, 5, 0])
    expect(await shared.addOnce('fourth', [owe(client, [35_000, 25_000, 15_000, 3_000])])).toBe(true)
    expect(await agesInRedis(client)).toEqual([40, 35, 30, 25, 20, 15, 10, 5, 3, 0])
    // One window after the last admission.
    const leftMs =
      (await redis.pttl(`sluice:1:{${client}}:five:60000:sliding`)) + performance.now() - beganAtMs
    expect(leftMs).toBeGreaterThan(59_000)
    expect(leftMs).toBeLessThanOrEqual(61_000)
  })

  test('requests admitted during an outage of Redis fill the quota whatever is refunded after they were added', async () => {
    const shared = countInRedis(openRedis(server.url))
    const ages = fc.array(fc.integer({ min: 0, max: 50_000 }), { maxLength: 5 })
    const drawn = fc.record({
      counted: fc.integer({ min: 0, max: 5 }),
      kept: fc.integer({ min: 0, max: 5 }),
      replicas: fc.array(ages, { maxLength: 3 }),
    })
    await eventually('Redis decides', async () =>
      expect(await shared.decide(chargeAll(newClient(), [refundable]))).toMatchObject({ outcome: 'allowed' }),
    )
    await fc.assert(
      fc.asyncProperty(drawn, async ({ counted, kept, replicas }) => {
        const client = newClient()
        const charges = chargeAll(client, [refundable])
        const decisions = await Promise.all(
          Array.from({ length: counted }, async () => shared.decide(charges)),
        )
        for (const [replica, agesMs] of replicas.entries()) {
          if (agesMs.length === 0) continue
          const added = {
            ...owe(
              client,
              agesMs.toSorted((a, b) => b - a),
            ),
            policy: refundable,
          }
          expect(await shared.addOnce(`${client} ${replica}`, [added])).toBe(true)
        }
        const reservations = decisions.flatMap((decision) =>
          'states' in decision ? decision.states.flatMap(({ reservation }) => reservation ?? []) : [],
        )
        expect(reservations).toHaveLength(counted)
        for (const reservation of reservations.slice(kept)) shared.settle(reservation, 0)
        const left = Math.min(counted, kept) + replicas.flat().length
        const expected = Math.max(0, refundable.quota - left)
        const tickets = new Set(reservations.map(({ ticket }) => Number(ticket)))
        await eventually('the refunds are in Redis', async () => {
          const times = await timesOf(client, refundable)
          expect(times.filter((time) => tickets.has(time))).toHaveLength(Math.min(counted, kept))
        })
        const asked = await Promise.all(
          Array.from({ length: refundable.quota + 1 }, async () => shared.decide(charges)),
        )
        expect(countAllowed(asked)).toBe(expected)
      }),
      { numRuns: runs(300) },
    )
  })

  test('requests admitted during an outage of Redis are added once, together with counters of fixed windows, and not to a key of another type', async () => {
    const shared = countInRedis(openRedis(server.url))
    const [client, broken] = [newClient(), newClient()]
    await redis.set(`sluice:1:{${broken}}:five:60000:sliding`, 'x')
    const debt = [
      owe(broken, [1000]),
      { policy: wide, partitionKey: client, counted: [4], endsAtMs: performance.now() + 50_000 },
      owe(client, [30_000, 20_000]),
    ]
    await eventually('Redis has taken the admissions', async () =>
      expect(await shared.addOnce('all', debt)).toBe(true),
    )
    expect(await shared.addOnce('all', debt)).toBe(true)
    expect(await agesInRedis(client)).toEqual([30, 20])
    expect(await redis.get(`sluice:1:{${client}}:wide:60000`)).toBe('4')
    expect(await redis.get(`sluice:1:{${broken}}:five:60000:sliding`)).toBe('x')
    expect(await redis.pttl(`sluice:1:{${broken}}:five:60000:sliding`)).toBe(-1)
  })
})

test('a user with the rights that docs/redis.md names may do all this', async () => {
  const rights =
    '-@all +eval +evalsha +incr +incrby +decr +del +pttl +pexpire +set +info +select +client|setname ' +
    '+time +lindex +rpush +rpop +ltrim +lrem +pexpireat'
  await redis.acl('SETUSER', 'sluice', 'on', '>pw', '~sluice:*', ...rights.split(' '))
  const restricted = await openAnsweringLimiter(server.url.replace('//', '//sluice:pw@'))
  const client = newClient()
  await admitEarlier(client, [70_000, 50_000])
  const decisions = await decideAtOnce([restricted], 5, chargeAll(client, [wide, mail]))
  expect(countAllowed(decisions)).toBe(2)

  await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await eventually('unavailable', () => {
    void restricted.decide(chargeAll(client, [mail]))
    return restricted.storeState() === 'unavailable'
  })
  await waitUntilAnswering(restricted)
  const later = await restricted.decide(chargeAll(newClient(), [mail, wide]))
  expect(later).toMatchObject({ outcome: 'allowed', states: [{ remaining: 2 }, { remaining: 99 }] })
})

test('three processes let exactly the quota through together, fixed and sliding', async () => {
  const runs = Array.from({ length: 3 }, () =>
    runNode('test/support/limiter/limiter-replica-process.ts', {}, [server.url]),
  )
  const totals = { fixed: Array.from({ length: 10 }, () => 0), sliding: Array.from({ length: 10 }, () => 0) }
  for (const { status, stdout, stderr } of await Promise.all(runs)) {
    expect(stderr).toBe('')
    expect(status).toBe(0)
    const [fixed = [], sliding = []] = JSON.parse(stdout) as number[][]
    for (const [i, count] of fixed.entries()) totals.fixed[i] = (totals.fixed[i] ?? 0) + count
    for (const [i, count] of sliding.entries()) totals.sliding[i] = (totals.sliding[i] ?? 0) + count
  }
  const all = Array.from({ length: 10 }, () => 137)
  expect(totals).toEqual({ fixed: all, sliding: all })
})
