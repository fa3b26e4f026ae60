import { Redis } from 'ioredis'
import { describe, expect, test, type TestContext } from 'vitest'
import type { Decision } from '../../proxy/limits/limiter.ts'
import { LEASE_MS } from '../../proxy/limits/algorithms/concurrency/concurrency.ts'
import type { Policy } from '../../proxy/policy.ts'
import { startRelay, type Relay } from '../support/network/relay.ts'
import { chargeAll, makePolicy } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import { startRedisLimiter, type RunningLimiter, waitUntilAnswering } from '../support/limiter/limiters.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { eventually } from '../support/wait/eventually.ts'
import { passes } from '../support/wait/passes.ts'

/*
 * An answer that arrives after the deadline shows which requests Redis has counted. The gateway decided these requests without Redis: their
 * local counts are not added to Redis again, and refused requests are refunded. A relay holds replies back until every request has been
 * decided, so nothing here depends on timing.
 */

const quota = 1000
const perRound = 40
const rounds = 5

const policies: readonly (readonly [string, Partial<Policy>])[] = [
  ['a fixed window', {}],
  ['a sliding window', { algorithm: 'sliding' }],
  ['units of a fixed window', { cost: { reserve: 3 } }],
  ['a token bucket', { algorithm: 'token-bucket' }],
]

// They run concurrently, because they mostly wait.
describe.concurrent.for(policies)('answers that come too late, of %s', ([, kind]) => {
  test('a late answer counts a request once, although this process has counted it too', async (test) => {
    const policy = makePolicy('late', quota, 86_400_000, kind)
    const { decisions, used } = await decideThroughPauses(policy, test)
    const units = policy.cost ? 3 : 1
    expect(countAllowed(decisions)).toBe(rounds * perRound)
    await eventually('each request is counted once', async () =>
      expect(await used()).toBe(rounds * perRound * units),
    )
  })

  test('count nothing where the requests were refused', async (test) => {
    const policy = makePolicy('late', quota, 86_400_000, { ...kind, onStoreError: 'closed' })
    const { decisions, used } = await decideThroughPauses(policy, test)
    expect(decisions.map(({ outcome }) => outcome)).toEqual(Array(rounds * perRound).fill('unavailable'))
    await eventually('none is counted', async () => expect(await used()).toBe(0))
  })

  test('count where the requests were let through without being counted', async (test) => {
    const policy = makePolicy('late', quota, 86_400_000, { ...kind, onStoreError: 'open' })
    const { decisions, used } = await decideThroughPauses(policy, test)
    const units = policy.cost ? 3 : 1
    expect(countAllowed(decisions)).toBe(rounds * perRound)
    await eventually('each request is counted once', async () =>
      expect(await used()).toBe(rounds * perRound * units),
    )
  })
})

test('requests beyond the quota that local counters admit while an answer is late are added', async (test) => {
  const { relay, limiter } = await startBehindRelay(500, test)
  const charges = chargeAll('ip:192.0.2.1', [makePolicy('late', 30, 86_400_000)])
  expect(countAllowed(await decideAtOnce([limiter], 20, charges))).toBe(20)
  await relay.set({ kind: 'pause' })
  // These counters begin at zero, because Redis has all counts.
  expect(countAllowed(await decideAtOnce([limiter], 30, charges))).toBe(30)
  await relay.set({ kind: 'none' })
  const others = chargeAll('ip:192.0.2.2', [makePolicy('other', 1_000_000, 60_000)])
  await eventually('all 50 are counted', async () => {
    await limiter.decide(others)
    const [state] = await limiter.inspect(charges)
    expect(state).toMatchObject({ source: 'store', used: 50 })
  })
  expect(await limiter.decide(charges)).toMatchObject({ outcome: 'refused' })
})

test('a late answer about a window that has ended gives nothing back to the next one', async (test) => {
  const { server, relay, limiter } = await startBehindRelay(100, test)
  const other = startRedisLimiter(server.url)
  test.onTestFinished(() => {
    other.close()
  })
  await waitUntilAnswering(other)
  const charges = chargeAll('ip:192.0.2.1', [makePolicy('short', 1, 2000, { onStoreError: 'closed' })])
  await relay.set({ kind: 'pause-replies' })
  expect(await limiter.decide(charges)).toMatchObject({ outcome: 'unavailable' })
  await eventually('the next window has begun', async () =>
    expect(await other.decide(charges)).toMatchObject({ outcome: 'allowed' }),
  )
  await relay.set({ kind: 'none' })
  // Redis executes this after anything that the late answer has sent.
  await eventually('Redis decides', async () =>
    expect(
      await limiter.decide(chargeAll('ip:192.0.2.2', [makePolicy('wide', 1_000_000, 60_000)])),
    ).not.toHaveProperty('withoutStore'),
  )
  expect(await other.decide(charges)).toMatchObject({ outcome: 'refused' })
})

test('a late answer ends a cached refusal that was due to the requests it gives back', async (test) => {
  const { relay, limiter } = await startBehindRelay(2000, test)
  const charges = chargeAll('ip:192.0.2.3', [
    makePolicy('late-login', 5, 86_400_000, { onStoreError: 'closed' }),
  ])
  const ask = async (): Promise<Decision['outcome']> => (await limiter.decide(charges)).outcome
  // A gateway forgets all refusals when it first reads the resets of others, within 250 ms.
  await passes(500)
  expect([await ask(), await ask()]).toEqual(['allowed', 'allowed'])
  await relay.set({ kind: 'pause' })
  const late = await Promise.all([ask(), ask(), ask()])
  expect(late).toEqual(['unavailable', 'unavailable', 'unavailable'])
  const next = ask()
  await new Promise(setImmediate)
  await relay.set({ kind: 'none' })
  expect(await next).toBe('refused')
  await eventually('the client has three requests left', async () => (await ask()) === 'allowed')
  expect([await ask(), await ask(), await ask()]).toEqual(['allowed', 'allowed', 'refused'])
})

describe('requests in flight that were admitted without Redis', () => {
  const policy = makePolicy('late-exports', 2, LEASE_MS, { algorithm: 'concurrency' })
  const charges = chargeAll('ip:192.0.2.4', [policy])

  /** Two requests that are in flight, although Redis has not answered. */
  async function admitTwo(
    relay: Relay,
    limiter: RunningLimiter,
    kind: 'pause' | 'swallow',
  ): Promise<() => void> {
    await relay.set({ kind })
    const decisions = await Promise.all([limiter.decide(charges), limiter.decide(charges)])
    expect(decisions).toMatchObject([1, 2].map(() => ({ outcome: 'allowed', withoutStore: true })))
    return () => {
      for (const decision of decisions)
        if (decision.outcome === 'allowed' && decision.states[0]?.reservation)
          limiter.settle(decision.states[0].reservation, 0)
    }
  }

  const ask = async (limiter: RunningLimiter): Promise<Decision['outcome']> =>
    (await limiter.decide(charges)).outcome

  test('requests in flight that were admitted without Redis count without a gap when the answer comes late', async (test) => {
    const { relay, limiter } = await startBehindRelay(1000, test)
    const end = await admitTwo(relay, limiter, 'pause')
    await relay.set({ kind: 'none' })
    const next = [await ask(limiter), await ask(limiter), await ask(limiter)]
    expect(next).toEqual(['refused', 'refused', 'refused'])
    end()
    await eventually('another one passes', async () => (await ask(limiter)) === 'allowed')
  })

  test('requests in flight that were admitted without Redis count from the next answer on if Redis has not heard of them', async (test) => {
    const { relay, limiter } = await startBehindRelay(1000, test)
    const end = await admitTwo(relay, limiter, 'swallow')
    const disconnected = new Promise((resolve) => limiter.connection.client.once('close', resolve))
    await relay.set({ kind: 'none' })
    await disconnected
    await eventually('connected again', () => limiter.connection.client.status === 'ready')
    const other = chargeAll('ip:192.0.2.5', [makePolicy('other', 1_000_000, 60_000)])
    await eventually('Redis decides', async () =>
      expect(await limiter.decide(other)).not.toHaveProperty('withoutStore'),
    )
    expect(await ask(limiter)).toBe('refused')
    end()
    await eventually('another one passes', async () => (await ask(limiter)) === 'allowed')
  })
})

/** A limiter whose connection to Redis goes through a relay. */
async function startBehindRelay(
  storeTimeoutMs: number,
  { onTestFinished }: TestContext,
): Promise<{
  readonly server: Awaited<ReturnType<typeof startRedisServer>>
  readonly relay: Relay
  readonly limiter: RunningLimiter
}> {
  const server = await startRedisServer()
  const relay = await startRelay(server.port)
  const limiter = startRedisLimiter(`redis://127.0.0.1:${relay.port}`, storeTimeoutMs)
  onTestFinished(() => {
    limiter.close()
  })
  await waitUntilAnswering(limiter)
  // A gateway takes a connection that is silent for two seconds for dead, and on a busy machine a round may take that long.
  const { client: connected } = limiter.connection
  if (connected instanceof Redis) connected.options.socketTimeout = 120_000
  return { server, relay, limiter }
}

/** Delays Redis's answers in each round, and asks Redis again in between so that the limiter does not give it up. */
async function decideThroughPauses(
  policy: Policy,
  test: TestContext,
): Promise<{ readonly decisions: readonly Decision[]; readonly used: () => Promise<number | undefined> }> {
  const { server, relay, limiter } = await startBehindRelay(500, test)
  const operator = new Redis(server.url)
  test.onTestFinished(() => {
    operator.disconnect()
  })
  const client = 'ip:192.0.2.1'
  const other = makePolicy('other', 1_000_000, 60_000)
  const decisions: Decision[] = []
  for (let round = 0; round < rounds; round++) {
    await eventually('Redis decides', async () => {
      const decision = await limiter.decide(chargeAll('ip:192.0.2.2', [other]))
      expect(decision).not.toHaveProperty('withoutStore')
    })
    const before = await commandsOf()
    await relay.set({ kind: 'pause' })
    // Redis gets each request before the pause or after it: either way the answer is late.
    const asked = Array.from({ length: perRound }, async () => limiter.decide(chargeAll(client, [policy])))
    decisions.push(...(await Promise.all(asked)))
    await relay.set({ kind: 'none' })
    await eventually('Redis has decided', async () => expect(await commandsOf()).toBeGreaterThan(before))
  }
  await eventually('Redis decides', () => limiter.storeState() === 'available')
  return {
    decisions,
    async used() {
      // The pending units are added with the next answer.
      await limiter.decide(chargeAll('ip:192.0.2.2', [other]))
      const [state] = await limiter.inspect(chargeAll(client, [policy]))
      return state?.source === 'store' ? state.used : undefined
    },
  }

  async function commandsOf(): Promise<number> {
    const stats = await operator.info('commandstats')
    return [...stats.matchAll(/cmdstat_evalsha:calls=(\d+)/g)].reduce(
      (sum, found) => sum + Number(found[1]),
      0,
    )
  }
}
