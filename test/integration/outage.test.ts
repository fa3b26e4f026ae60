import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { afterInput } from '../../shared/after-input.ts'
import type { Charge, Decision } from '../../proxy/limits/limiter.ts'
import { freePort } from '../support/network/ports.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce, decideForEach } from '../support/limiter/decisions.ts'
import { waitUntilAnswering, type RunningLimiter } from '../support/limiter/limiters.ts'
import { countInRedis } from '../support/redis/count-in-redis.ts'
import { openAnsweringLimiter, openLimiter, openRedis } from '../support/redis/redis-limiters.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { eventually } from '../support/wait/eventually.ts'

const given = 'Redis unavailable: circuit breaker open, applying onStoreError'
const back = 'Redis available: circuit breaker closed'

/** The timeout in tests about timeouts. In all other tests Redis has as long as it needs on a busy machine. */
const storeTimeoutMs = 300

/**
 * Decides, and returns whether the decision came before a timer that was set at the same time. The timers of a process keep their order, no
 * matter how long a busy machine pauses it.
 */
async function decideWithin(
  ms: number,
  limiter: RunningLimiter,
  charges: readonly Charge[],
): Promise<{ readonly decision: Decision; readonly isInTime: boolean }> {
  let isInTime = false
  const decided = Promise.resolve(limiter.decide(charges)).then((decision) => {
    isInTime = true
    return decision
  })
  await sleep(ms)
  await new Promise<void>((resolve) => afterInput(resolve))
  const wasInTime = isInTime
  return { decision: await decided, isInTime: wasInTime }
}

function transitions({ logLines }: RunningLimiter): string[] {
  return logLines.map(({ msg }) => msg).filter((msg) => msg === given || msg === back)
}

describe('Redis that hangs', () => {
  test('Redis that hangs delays no request beyond the timeout, and none at all once the circuit breaker is open', async () => {
    const server = await startRedisServer()
    const first = await openAnsweringLimiter(server.url, storeTimeoutMs)
    const second = await openAnsweringLimiter(server.url)
    const login = makePolicy('login', 20, 60_000)
    const strict = makePolicy('strict', 20, 60_000, { onStoreError: 'closed' })
    const lenient = makePolicy('lenient', 1, 60_000, { onStoreError: 'open' })
    const client = newClient()

    await server.signal('SIGSTOP')
    const late: Decision[] = []
    let allowed = 0
    // The limiter gives Redis up after the third failure.
    for (let turn = 1; turn <= 3; turn++) {
      expect(first.storeState()).toBe('available')
      const decisions = await Promise.all(
        Array.from({ length: 3 }, () => decideWithin(2 * storeTimeoutMs, first, chargeAll(client, [login]))),
      )
      late.push(...decisions.flatMap(({ decision, isInTime }) => (isInTime ? [] : [decision])))
      allowed += countAllowed(decisions.map(({ decision }) => decision))
    }
    expect(late).toEqual([])
    expect(first.storeState()).toBe('unavailable')
    for (let i = 0; i < 50; i++) {
      const decision = first.decide(chargeAll(client, [login]))
      expect(decision).not.toBeInstanceOf(Promise)
      expect(first.decide(chargeAll(newClient(), [login]))).not.toBeInstanceOf(Promise)
      if ((await decision).outcome === 'allowed') allowed += 1
    }
    expect(allowed).toBe(20)
    expect(await first.decide(chargeAll(client, [strict]))).toMatchObject({ outcome: 'unavailable' })
    for (let i = 0; i < 3; i++) {
      expect(await first.decide(chargeAll(client, [lenient]))).toEqual({
        outcome: 'allowed',
        states: [],
        withoutStore: true,
      })
    }
    expect(first.storeState()).toBe('unavailable')

    await server.signal('SIGCONT')
    await waitUntilAnswering(first)
    await waitUntilAnswering(second)
    expect(await first.decide(chargeAll(client, [login]))).toMatchObject({ outcome: 'refused' })
    expect(await second.decide(chargeAll(client, [login]))).toMatchObject({ outcome: 'refused' })
    expect(transitions(first)).toEqual([given, back])
    expect(first.telemetry.breaker).toEqual(['open', 'closed'])
    expect(transitions(second)).toEqual([])
  })

  test('Redis that hangs is given up by all waiting requests at once, not by one after the other', async () => {
    const server = await startRedisServer()
    const limiter = await openAnsweringLimiter(server.url, storeTimeoutMs)
    await server.signal('SIGSTOP')
    const login = makePolicy('login', 1000, 60_000)
    const asked: ReturnType<typeof decideWithin>[] = []
    for (let turn = 0; turn < 40; turn++) {
      // The first three requests run into the timeout. Requests sent 65 ms later or more do not have to wait for their own timeout.
      const withinMs = turn < 16 ? 2 * storeTimeoutMs : storeTimeoutMs - 15
      asked.push(decideWithin(withinMs, limiter, chargeAll(newClient(), [login])))
      await sleep(5)
    }
    const inTime = (await Promise.all(asked)).map(({ isInTime }) => isInTime)
    expect(inTime).toEqual(Array<boolean>(40).fill(true))
  })

  test('Redis does not count as hanging when this process has paused', async () => {
    const server = await startRedisServer()
    const limiter = await openAnsweringLimiter(server.url, storeTimeoutMs)
    const login = makePolicy('login', 1000, 60_000)
    await limiter.decide(chargeAll(newClient(), [login]))
    const asked = limiter.decide(chargeAll(newClient(), [login]))
    await new Promise((resolve) => setImmediate(resolve))
    const untilMs = performance.now() + 2.5 * storeTimeoutMs
    while (performance.now() < untilMs) continue
    expect(await asked).toMatchObject({ outcome: 'allowed' })
    expect(limiter.telemetry.failures).toBe(0)
  })
})

describe('requests admitted during an outage of Redis', () => {
  test('requests admitted during an outage of Redis are added once, to current windows, with the rest of their time', async () => {
    const server = await startRedisServer()
    const limiter = await openAnsweringLimiter(server.url)
    const login = makePolicy('login', 10, 60_000)
    const brief = makePolicy('brief', 10, 400)
    const known = newClient()
    const fresh = newClient()
    await decideAtOnce([limiter], 4, chargeAll(known, [login]))
    const beganAtMs = performance.now()
    const redis = openRedis(server.url)
    await redis.pexpire(`sluice:1:{${known}}:login:60000`, 30_000)

    limiter.connection.client.disconnect(true)
    await server.signal('SIGSTOP')
    await eventually('not connected', () => limiter.storeState() === 'unavailable')
    await decideAtOnce([limiter], 3, chargeAll(known, [login]))
    await decideAtOnce([limiter], 12, chargeAll(fresh, [login]))
    await decideAtOnce([limiter], 5, chargeAll(fresh, [brief]))
    // The brief window ends.
    await sleep(500)
    await server.signal('SIGCONT')
    await waitUntilAnswering(limiter)

    await eventually('closed', () => limiter.telemetry.breaker.includes('closed'))
    expect(await redis.get(`sluice:1:{${known}}:login:60000`)).toBe('7')
    expect(await redis.pttl(`sluice:1:{${known}}:login:60000`)).toBeLessThanOrEqual(30_000)
    expect(await redis.get(`sluice:1:{${fresh}}:login:60000`)).toBe('10')
    const leftMs = await redis.pttl(`sluice:1:{${fresh}}:login:60000`)
    expect(leftMs).toBeGreaterThan(59_990 - (performance.now() - beganAtMs))
    expect(leftMs).toBeLessThanOrEqual(59_600)
    expect(await redis.exists(`sluice:1:{${fresh}}:brief:400`)).toBe(0)
    for (const key of await redis.keys('*')) expect(await redis.pttl(key), key).toBeGreaterThan(0)

    await decideAtOnce([limiter], 5, chargeAll(newClient(), [login]))
    expect(await redis.get(`sluice:1:{${known}}:login:60000`)).toBe('7')
  })

  test('many requests admitted during an outage of Redis are added in parts, before Redis decides again', async () => {
    const server = await startRedisServer()
    const limiter = await openAnsweringLimiter(server.url)
    const login = makePolicy('login', 1, 60_000)
    await server.signal('SIGKILL')
    await eventually('not connected', () => limiter.storeState() === 'unavailable')
    const clients = Array.from({ length: 2_300 }, newClient)
    for (const client of clients) await limiter.decide(chargeAll(client, [login]))
    const again = await startRedisServer({ port: server.port })
    await waitUntilAnswering(limiter)
    const decisions = await decideForEach(limiter, clients, [login])
    expect(countAllowed(decisions)).toBe(0)
    const redis = openRedis(again.url)
    expect((await redis.keys('sluice:1:*:login:60000')).length).toBe(2_300)
  })

  test('requests admitted during an outage of Redis are neither lost nor added twice if the answer to adding them is lost', async () => {
    const server = await startRedisServer()
    const redis = openRedis(server.url)
    await redis.ping()
    const limiter = countInRedis(redis)
    const policy = makePolicy('login', 10, 60_000)
    const debt = [{ policy, partitionKey: newClient(), counted: [4], endsAtMs: performance.now() + 50_000 }]
    expect(await limiter.addOnce('one', debt)).toBe(true)
    expect(await limiter.addOnce('one', debt)).toBe(true)
    expect(await redis.get(`sluice:1:{${debt[0]?.partitionKey}}:login:60000`)).toBe('4')
    const brief = { policy, partitionKey: newClient(), counted: [1], endsAtMs: performance.now() + 60 }
    expect(await limiter.addOnce('mixed', [brief, ...debt])).toBe(true)
    // The brief window ends.
    await sleep(70)
    expect(await limiter.addOnce('mixed', [brief, ...debt])).toBe(true)
    expect(await redis.get(`sluice:1:{${debt[0]?.partitionKey}}:login:60000`)).toBe('8')
    expect(await limiter.addOnce('two', debt)).toBe(true)
    expect(await redis.get(`sluice:1:{${debt[0]?.partitionKey}}:login:60000`)).toBe('12')
    redis.disconnect()
    expect(await limiter.addOnce('three', debt)).toBe(false)
  })
})

describe('unreachable Redis', () => {
  test('decisions in flight fail at once when Redis exits', async () => {
    const server = await startRedisServer()
    // Longer than this test may take.
    const limiter = await openAnsweringLimiter(server.url, 600_000)
    const login = makePolicy('login', 5, 60_000, { onStoreError: 'closed' })
    await limiter.decide(chargeAll(newClient(), [login]))
    await server.signal('SIGSTOP')
    const asked = limiter.decide(chargeAll(newClient(), [login]))
    // Resolves when the request has been sent.
    await new Promise<void>((resolve) => afterInput(resolve))
    await server.signal('SIGKILL')
    expect(await asked).toEqual({ outcome: 'unavailable', uncertain: true })
  })

  test('unreachable Redis does not prevent start and serving, and is used once it is available', async () => {
    const port = await freePort()
    const limiter = openLimiter(`redis://127.0.0.1:${port}`)
    const login = makePolicy('login', 5, 60_000)
    const client = newClient()
    const decisions = []
    for (let i = 0; i < 8; i++) {
      const { decision, isInTime } = await decideWithin(50, limiter, chargeAll(client, [login]))
      expect(isInTime).toBe(true)
      decisions.push(decision)
    }
    expect(countAllowed(decisions)).toBe(5)
    expect(limiter.storeState()).toBe('unavailable')
    const server = await startRedisServer({ port })
    await waitUntilAnswering(limiter)
    expect(await limiter.decide(chargeAll(client, [login]))).toMatchObject({ outcome: 'refused' })
    expect(transitions(limiter)).toEqual([given, back])
    const attempts = limiter.logLines.filter(({ msg }) => msg === 'cannot connect to Redis; retrying')
    expect(attempts).toHaveLength(1)
    await server.stop()
  })

  test('Redis may restart empty, and no request waits meanwhile', async () => {
    const server = await startRedisServer()
    const first = await openAnsweringLimiter(server.url)
    const second = await openAnsweringLimiter(server.url)
    const login = makePolicy('login', 10, 60_000)
    const client = newClient()
    await decideAtOnce([first], 6, chargeAll(client, [login]))
    await server.signal('SIGKILL')
    const asked: ReturnType<typeof decideWithin>[] = []
    for (let i = 0; i < 30; i++) {
      asked.push(decideWithin(2 * storeTimeoutMs, first, chargeAll(client, [login])))
      await sleep(2)
    }
    const decided = await Promise.all(asked)
    expect(decided.filter(({ isInTime }) => !isInTime)).toEqual([])
    expect(countAllowed(decided.map(({ decision }) => decision))).toBe(10)
    await startRedisServer({ port: server.port })
    await waitUntilAnswering(first)
    await waitUntilAnswering(second)
    expect(await second.decide(chargeAll(client, [login]))).toMatchObject({ outcome: 'refused' })
  })
})

describe('connections that are cut all the time', () => {
  test('connections that are cut all the time count the admitted requests, plus at most those in flight at each cut', async () => {
    const server = await startRedisServer()
    // The limiter notices a cut at once. An answer that is merely late, on a busy machine, must not count as a cut.
    const limiter = await openAnsweringLimiter(server.url, 30_000)
    const killer = openRedis(server.url)
    const policy = makePolicy('many', 1_000_000, 600_000)
    const client = newClient()
    let admitted = 0
    let onTheirWayAtCuts = 0
    let asked = 0
    let answered = 0
    for (let round = 0; round < 40; round++) {
      const decisions = Array.from({ length: 25 }, async (_, i) => {
        await sleep(i / 3)
        asked += 1
        const decision = await limiter.decide(chargeAll(client, [policy]))
        answered += 1
        if (decision.outcome === 'allowed') admitted += 1
      })
      await sleep(4)
      const answeredBefore = answered
      await killer.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      // The cut may have come at any instant since. Redis may have counted every request sent by now before the cut.
      onTheirWayAtCuts += asked - answeredBefore
      await Promise.all(decisions)
    }
    await waitUntilAnswering(limiter)
    // The pending units are added with the next answer.
    await limiter.decide(chargeAll(newClient(), [policy]))
    expect(admitted).toBe(1000)
    const counted = await eventually('all that was admitted is counted', async () => {
      const inRedis = Number(await killer.get(`sluice:1:{${client}}:many:600000`))
      expect(inRedis).toBeGreaterThanOrEqual(admitted)
      return inRedis
    })
    expect(counted - admitted).toBeLessThanOrEqual(onTheirWayAtCuts)
  })
})
