import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import type { Charge, Decision } from '../../proxy/limiter/limiter.ts'
import { freePort } from '../support/network/ports.ts'
import {
  chargeAll,
  countAllowed,
  decideAtOnce,
  decideForEach,
  makePolicy,
  newClient,
  waitUntilAnswering,
  type RunningLimiter,
} from '../support/limiter/limiters.ts'
import {
  countInRedis,
  openAnsweringLimiter,
  openLimiter,
  openRedis,
} from '../support/redis/redis-limiters.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { eventually } from '../support/wait/eventually.ts'

/** These are about the time that Redis has; a machine that stops for as long makes them fail now and then. */
const aboutTime = { retry: 2 }

const given = 'Redis unavailable: circuit breaker open, applying onStoreError'
const back = 'Redis available: circuit breaker closed'

const storeTimeoutMs = 100

/** Decides and says how long that took. */
async function timed(
  limiter: RunningLimiter,
  charges: readonly Charge[],
): Promise<{ decision: Decision; waitedMs: number }> {
  const askedAtMs = performance.now()
  const decision = await limiter.decide(charges)
  return { decision, waitedMs: performance.now() - askedAtMs }
}

function transitions({ logLines }: RunningLimiter): string[] {
  return logLines.map(({ msg }) => msg).filter((msg) => msg === given || msg === back)
}

describe('Redis that hangs', aboutTime, () => {
  test('makes no request wait longer than the timeout, and none at all once it is given up', async () => {
    const server = await startRedisServer()
    const first = await openAnsweringLimiter(server.url, storeTimeoutMs)
    const second = await openAnsweringLimiter(server.url, storeTimeoutMs)
    const login = makePolicy('login', 20, 60_000)
    const strict = makePolicy('strict', 20, 60_000, { onStoreError: 'closed' })
    const lenient = makePolicy('lenient', 1, 60_000, { onStoreError: 'open' })
    const client = newClient()

    await server.signal('SIGSTOP')
    const waits: number[] = []
    let allowed = 0
    while (first.storeState() === 'available') {
      const turn = await Promise.all(
        Array.from({ length: 3 }, () => timed(first, chargeAll(client, [login]))),
      )
      waits.push(...turn.map(({ waitedMs }) => waitedMs))
      allowed += countAllowed(turn.map(({ decision }) => decision))
    }
    expect(Math.max(...waits)).toBeLessThan(300)
    for (let i = 0; i < 50; i++) {
      const { decision, waitedMs } = await timed(first, chargeAll(client, [login]))
      expect(waitedMs).toBeLessThan(20)
      expect(first.decide(chargeAll(newClient(), [login]))).not.toBeInstanceOf(Promise)
      if (decision.outcome === 'allowed') allowed += 1
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

  test('is given up for all that wait at once, not one after the other', async () => {
    const server = await startRedisServer()
    const limiter = await openAnsweringLimiter(server.url, storeTimeoutMs)
    await server.signal('SIGSTOP')
    const login = makePolicy('login', 1000, 60_000)
    const waits: Promise<number>[] = []
    for (let turn = 0; turn < 40; turn++) {
      waits.push(timed(limiter, chargeAll(newClient(), [login])).then(({ waitedMs }) => waitedMs))
      await sleep(5)
    }
    const waitedMs = await Promise.all(waits)
    expect(Math.max(...waitedMs)).toBeLessThan(200)
    // The first three ran into the timeout; what was asked 80 ms later did not have to.
    expect(waitedMs[16]).toBeLessThan(80)
  })

  test('does not count as hanging when it was this process that paused', async () => {
    const server = await startRedisServer()
    const limiter = await openAnsweringLimiter(server.url, storeTimeoutMs)
    const login = makePolicy('login', 1000, 60_000)
    await limiter.decide(chargeAll(newClient(), [login]))
    const asked = limiter.decide(chargeAll(newClient(), [login]))
    await new Promise((resolve) => setImmediate(resolve))
    const untilMs = performance.now() + 250
    while (performance.now() < untilMs) continue
    expect(await asked).toMatchObject({ outcome: 'allowed' })
    expect(limiter.telemetry.failures).toBe(0)
  })
})

describe('requests admitted during an outage of Redis', aboutTime, () => {
  test('are added once, to current windows, with the rest of their time', async () => {
    const server = await startRedisServer()
    const limiter = await openAnsweringLimiter(server.url, storeTimeoutMs)
    const login = makePolicy('login', 10, 60_000)
    const brief = makePolicy('brief', 10, 400)
    const known = newClient()
    const fresh = newClient()
    await decideAtOnce([limiter], 4, chargeAll(known, [login]))
    const redis = openRedis(server.url)
    await redis.pexpire(`sluice:1:{${known}}:login:60000`, 30_000)

    limiter.connection.client.disconnect(true)
    await server.signal('SIGSTOP')
    await eventually('not connected', () => limiter.storeState() === 'unavailable')
    await decideAtOnce([limiter], 3, chargeAll(known, [login]))
    await decideAtOnce([limiter], 12, chargeAll(fresh, [login]))
    await decideAtOnce([limiter], 5, chargeAll(fresh, [brief]))
    await sleep(500)
    await server.signal('SIGCONT')
    await waitUntilAnswering(limiter)

    await eventually('closed', () => limiter.telemetry.breaker.includes('closed'))
    expect(await redis.get(`sluice:1:{${known}}:login:60000`)).toBe('7')
    expect(await redis.pttl(`sluice:1:{${known}}:login:60000`)).toBeLessThanOrEqual(30_000)
    expect(await redis.get(`sluice:1:{${fresh}}:login:60000`)).toBe('10')
    const leftMs = await redis.pttl(`sluice:1:{${fresh}}:login:60000`)
    expect(leftMs).toBeGreaterThan(55_000)
    expect(leftMs).toBeLessThanOrEqual(59_600)
    expect(await redis.exists(`sluice:1:{${fresh}}:brief:400`)).toBe(0)
    for (const key of await redis.keys('*')) expect(await redis.pttl(key), key).toBeGreaterThan(0)

    await decideAtOnce([limiter], 5, chargeAll(newClient(), [login]))
    expect(await redis.get(`sluice:1:{${known}}:login:60000`)).toBe('7')
  })

  test('is added in parts where it is much, before Redis decides again', async () => {
    const server = await startRedisServer()
    const limiter = await openAnsweringLimiter(server.url, storeTimeoutMs)
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

  test('is not lost and not added twice when the answer to adding is lost', async () => {
    const server = await startRedisServer()
    const redis = openRedis(server.url)
    await redis.ping()
    const limiter = countInRedis(redis, { timeoutMs: storeTimeoutMs })
    const policy = makePolicy('login', 10, 60_000)
    const debt = [{ policy, partitionKey: newClient(), amount: 4, endsAtMs: performance.now() + 50_000 }]
    expect(await limiter.addOnce('one', debt)).toBe(true)
    expect(await limiter.addOnce('one', debt)).toBe(true)
    expect(await redis.get(`sluice:1:{${debt[0]?.partitionKey}}:login:60000`)).toBe('4')
    const brief = { policy, partitionKey: newClient(), amount: 1, endsAtMs: performance.now() + 60 }
    expect(await limiter.addOnce('mixed', [brief, ...debt])).toBe(true)
    await sleep(70)
    expect(await limiter.addOnce('mixed', [brief, ...debt])).toBe(true)
    expect(await redis.get(`sluice:1:{${debt[0]?.partitionKey}}:login:60000`)).toBe('8')
    expect(await limiter.addOnce('two', debt)).toBe(true)
    expect(await redis.get(`sluice:1:{${debt[0]?.partitionKey}}:login:60000`)).toBe('12')
    redis.disconnect()
    expect(await limiter.addOnce('three', debt)).toBe(false)
  })
})

describe('unreachable Redis', aboutTime, () => {
  test('fails decisions in flight at once when it exits', async () => {
    const server = await startRedisServer()
    const limiter = await openAnsweringLimiter(server.url, 5000)
    const login = makePolicy('login', 5, 60_000, { onStoreError: 'closed' })
    await limiter.decide(chargeAll(newClient(), [login]))
    await server.signal('SIGSTOP')
    const asked = timed(limiter, chargeAll(newClient(), [login]))
    await sleep(50)
    await server.signal('SIGKILL')
    const { decision, waitedMs } = await asked
    expect(decision).toEqual({ outcome: 'unavailable', uncertain: true })
    expect(waitedMs).toBeLessThan(500)
  })

  test('does not prevent start and serving, and is used once it is available', async () => {
    const port = await freePort()
    const limiter = openLimiter(`redis://127.0.0.1:${port}`, storeTimeoutMs)
    const login = makePolicy('login', 5, 60_000)
    const client = newClient()
    const decisions = []
    for (let i = 0; i < 8; i++) {
      const { decision, waitedMs } = await timed(limiter, chargeAll(client, [login]))
      expect(waitedMs).toBeLessThan(50)
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

  test('may restart empty, and no request waits meanwhile', async () => {
    const server = await startRedisServer()
    const first = await openAnsweringLimiter(server.url, storeTimeoutMs)
    const second = await openAnsweringLimiter(server.url, storeTimeoutMs)
    const login = makePolicy('login', 10, 60_000)
    const client = newClient()
    await decideAtOnce([first], 6, chargeAll(client, [login]))
    await server.signal('SIGKILL')
    const waits: number[] = []
    const decisions: Decision[] = []
    for (let i = 0; i < 30; i++) {
      const { decision, waitedMs } = await timed(first, chargeAll(client, [login]))
      waits.push(waitedMs)
      decisions.push(decision)
      await sleep(2)
    }
    expect(Math.max(...waits)).toBeLessThan(200)
    expect(countAllowed(decisions)).toBe(10)
    await startRedisServer({ port: server.port })
    await waitUntilAnswering(first)
    await waitUntilAnswering(second)
    expect(await second.decide(chargeAll(client, [login]))).toMatchObject({ outcome: 'refused' })
  })
})

describe('connections that are cut all the time', aboutTime, () => {
  test('count what was admitted, plus at most the requests in flight at each cut', async () => {
    const server = await startRedisServer()
    const limiter = await openAnsweringLimiter(server.url, storeTimeoutMs)
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
      // The cut was at some instant since: whatever had been asked by now may have been counted before it.
      onTheirWayAtCuts += asked - answeredBefore
      await Promise.all(decisions)
    }
    await waitUntilAnswering(limiter)
    // What is still owed is added with the next answer.
    await limiter.decide(chargeAll(newClient(), [policy]))
    await sleep(300)
    const counted = Number(await killer.get(`sluice:1:{${client}}:many:600000`))
    expect(admitted).toBe(1000)
    expect(counted).toBeGreaterThanOrEqual(admitted)
    expect(counted - admitted).toBeLessThanOrEqual(onTheirWayAtCuts)
  })
})
