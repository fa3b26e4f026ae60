import { expect, test } from 'vitest'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import { openAnsweringLimiter, openRedis } from '../support/redis/redis-limiters.ts'
import { LEASE_MS } from '../../proxy/limits/algorithms/concurrency/concurrency.ts'
import { freshRedis, startRedisServer } from '../support/redis/redis.ts'
import { startRelay } from '../support/network/relay.ts'
import { eventually } from '../support/wait/eventually.ts'

const login = makePolicy('login', 5, 60_000)
const slides = makePolicy('slides', 5, 60_000, { algorithm: 'sliding' })
const bucket = makePolicy('bucket', 5, 60_000, { algorithm: 'token-bucket' })
const failures = makePolicy('failures', 5, 60_000, { countStatus: [{ first: 400, last: 499 }] })
const inFlight = makePolicy('in-flight', 5, LEASE_MS, { algorithm: 'concurrency' })

const openIn = (url: string, namespace?: string) => openAnsweringLimiter(url, undefined, namespace)

test('gateways with different namespaces count apart, gateways with the same one together, and a reset stays within its namespace', async () => {
  const url = await freshRedis()
  const [shop, shopToo, blog, none] = await Promise.all([
    openIn(url, 'shop'),
    openIn(url, 'shop'),
    openIn(url, 'blog'),
    openIn(url),
  ])
  const charges = chargeAll(newClient(), [login, slides])
  expect(countAllowed(await decideAtOnce([shop, shopToo], 20, charges))).toBe(5)
  expect(countAllowed(await decideAtOnce([blog], 20, charges))).toBe(5)
  expect(countAllowed(await decideAtOnce([none], 20, charges))).toBe(5)

  // Each limiter has refused the client, and its cache knows that without asking Redis.
  expect(await shop.reset(charges)).toBe('done')
  await eventually('the client of the same namespace is reset', async () =>
    expect((await shopToo.decide(charges)).outcome).toBe('allowed'),
  )
  expect(await blog.inspect(charges)).toMatchObject([{ used: 5 }, { used: 5 }])
  expect(countAllowed(await decideAtOnce([blog, none], 20, charges))).toBe(0)

  const redis = openRedis(url)
  // Each namespace has a mark beside its counters, which need not have been set yet.
  const keys = (await redis.keys('*')).filter((key) => !key.endsWith(':1:mark'))
  expect(keys.filter((key) => key.startsWith('sluice:shop:1:'))).toHaveLength(3)
  expect(keys.filter((key) => key.startsWith('sluice:blog:1:'))).toHaveLength(2)
  expect(keys.filter((key) => key.startsWith('sluice:1:'))).toHaveLength(2)
  expect(keys).toHaveLength(7)
})

test('no key leaves its namespace, through decisions, settlements, resets, probes and the sync after an outage', async () => {
  const server = await startRedisServer()
  const operator = openRedis(server.url)
  await operator.acl('SETUSER', 'shop', 'on', '>password', '~sluice:shop:*', '+@all')
  const relay = await startRelay(server.port)
  const limiter = await openIn(`redis://shop:password@127.0.0.1:${relay.port}`, 'shop')
  const client = newClient()
  const charges = chargeAll(client, [login, slides])
  const reserved = await limiter.decide(chargeAll(client, [login, slides, bucket, failures, inFlight]))
  if (reserved.outcome !== 'allowed') throw new Error(reserved.outcome)
  const reservations = reserved.states.flatMap(({ reservation }) => reservation ?? [])
  expect(reservations).toHaveLength(2)
  for (const reservation of reservations) limiter.settle(reservation, 0)
  const held = await limiter.decide(chargeAll(client, [inFlight]))
  expect(held).toMatchObject({ outcome: 'allowed' })
  expect((await operator.keys('*')).map((key) => key.replace(`{${client}}`, 'client')).sort()).toEqual(
    expect.arrayContaining(
      ['bucket:60000:bucket', 'in-flight:in-flight'].map((key) => `sluice:shop:1:client:${key}`),
    ) as string[],
  )
  expect(await limiter.reset(charges)).toBe('done')
  await relay.set({ kind: 'refuse' })
  await eventually('Redis is given up', async () => {
    await limiter.decide(chargeAll(newClient(), [login]))
    expect(limiter.telemetry.breaker).toEqual(['open'])
  })
  expect(countAllowed(await decideAtOnce([limiter], 3, charges))).toBe(3)
  await relay.set({ kind: 'none' })
  await eventually('Redis decides again', () => expect(limiter.telemetry.breaker).toEqual(['open', 'closed']))

  await eventually('requests admitted meanwhile are added', async () =>
    expect(await operator.get(`sluice:shop:1:{${client}}:login:60000`)).toBe('3'),
  )
  expect(await limiter.inspect(charges)).toMatchObject([{ used: 3 }, { used: 3 }])
  for (const key of await operator.keys('*')) expect(key).toMatch(/^sluice:shop:1:/)
  expect(limiter.logLines.filter(({ level }) => level >= 50)).toEqual([])
})
