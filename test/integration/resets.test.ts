import { expect, test } from 'vitest'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import type { RunningLimiter } from '../support/limiter/limiters.ts'
import { openAnsweringLimiter, openRedis, readDocumentedRights } from '../support/redis/redis-limiters.ts'
import { freshRedis, startRedisServer } from '../support/redis/redis.ts'
import { startRelay } from '../support/network/relay.ts'
import { eventually } from '../support/wait/eventually.ts'

const login = makePolicy('login', 5, 60_000)
const slides = makePolicy('slides', 5, 60_000, { algorithm: 'sliding' })

function untilOneIsAllowed(limiter: RunningLimiter, client: string): Promise<void> {
  return eventually('a request is allowed again', async () =>
    expect((await limiter.decide(chargeAll(client, [login]))).outcome).toBe('allowed'),
  )
}

test('a gateway that was cut off hears of a reset before it syncs the requests that it admitted', async () => {
  const redis = await startRedisServer()
  const relay = await startRelay(redis.port)
  const near = await openAnsweringLimiter(redis.url)
  const far = await openAnsweringLimiter(`redis://127.0.0.1:${relay.port}`)
  const [reset, other] = [newClient(), newClient()]
  // The remote limiter must have read the list once before it can recognize new entries. It has when it lets a client in again.
  const early = newClient()
  expect(countAllowed(await decideAtOnce([far], 8, chargeAll(early, [login])))).toBe(5)
  await near.reset(chargeAll(early, [login]))
  await untilOneIsAllowed(far, early)

  await relay.set({ kind: 'refuse' })
  await eventually('Redis is given up', async () => {
    await far.decide(chargeAll(newClient(), [login]))
    expect(far.telemetry.breaker).toEqual(['open'])
  })
  for (const client of [reset, other])
    expect(countAllowed(await decideAtOnce([far], 8, chargeAll(client, [login])))).toBe(5)
  expect(await near.reset(chargeAll(reset, [login]))).toBe('done')
  await relay.set({ kind: 'none' })
  await eventually('Redis decides again', () => expect(far.telemetry.breaker).toEqual(['open', 'closed']))

  expect(await far.inspect([...chargeAll(reset, [login]), ...chargeAll(other, [login])])).toMatchObject([
    { source: 'store', used: 0 },
    { source: 'store', used: 5 },
  ])
  expect(countAllowed(await decideAtOnce([near, far], 8, chargeAll(reset, [login])))).toBe(5)
})

test('if the list of resets is lost or replaced, only the cache of clients over limit is emptied', async () => {
  const url = await freshRedis()
  const limiter = await openAnsweringLimiter(url)
  const client = newClient()
  const redis = openRedis(url)
  await decideAtOnce([limiter], 8, chargeAll(client, [login]))
  for (const entry of ['nonsense', '{"id":1,"client":"x","policies":[]}', '[]']) {
    await redis.del(`sluice:1:{${client}}:login:60000`)
    await redis.lpush('sluice:1:resets', entry)
    await untilOneIsAllowed(limiter, client)
    await decideAtOnce([limiter], 8, chargeAll(client, [login]))
  }
  await redis.del('sluice:1:resets', `sluice:1:{${client}}:login:60000`)
  await untilOneIsAllowed(limiter, client)
  expect(limiter.logLines.filter(({ level }) => level > 30)).toEqual([])
})

test('the reported state of a client predicts its next request, even if Redis has lost its counters', async () => {
  const url = await freshRedis()
  const [near, far] = [await openAnsweringLimiter(url), await openAnsweringLimiter(url)]
  const redis = openRedis(url)
  const policies = [login, slides, makePolicy('shadow', 3, 60_000, { mode: 'shadow' })]
  const clients = policies.map((policy) => chargeAll(newClient(), [policy]))
  for (const charges of clients) await decideAtOnce([near], 8, charges)
  await redis.flushdb()
  for (const limiter of [near, far]) {
    for (const charges of clients) {
      const [state] = await limiter.inspect(charges)
      const decision = await limiter.decide(charges)
      const isOver = (state?.used ?? 0) >= (state?.policy.quota ?? 0)
      expect(isOver).toBe(decision.outcome === 'refused')
      expect(state?.source).toBe(isOver ? 'local' : 'store')
      if (isOver) expect(state?.resetMs).toBeGreaterThan(0)
    }
  }
})

test('the rights in docs/redis.md are enough', async () => {
  const { counting, sliding } = readDocumentedRights()
  const server = await startRedisServer()
  const redis = openRedis(server.url)
  await redis.call('ACL', 'SETUSER', 'sluice', 'on', '>password', ...counting, ...sliding)
  const limiter = await openAnsweringLimiter(`redis://sluice:password@127.0.0.1:${server.port}`)
  const charges = chargeAll(newClient(), [login, slides])
  expect(countAllowed(await decideAtOnce([limiter], 8, charges))).toBe(5)
  expect(await limiter.inspect(charges)).toMatchObject([{ used: 5 }, { used: 5 }])
  expect(await limiter.reset(charges)).toBe('done')
  expect(countAllowed(await decideAtOnce([limiter], 8, charges))).toBe(5)
  await eventually('the list of resets has been read', async () =>
    expect(await redis.info('commandstats')).toContain('cmdstat_lindex:'),
  )
  expect(limiter.logLines.filter(({ level }) => level > 30)).toEqual([])
})
