import { expect, test } from 'vitest'
import { makePolicy, newClient } from '../support/limiter/charges.ts'
import { reservationsOf } from '../support/limiter/decisions.ts'
import { startRelay } from '../support/network/relay.ts'
import { openAnsweringLimiter, openRedis } from '../support/redis/redis-limiters.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { eventually } from '../support/wait/eventually.ts'
import { passes } from '../support/wait/passes.ts'

const tokens = makePolicy('tokens', 1000, 60_000, {
  cost: { reserve: 1, settle: { kind: 'header', name: 'x-cost', hide: false } },
})

const exports = makePolicy('exports', 2, 15_000, { algorithm: 'concurrency' })

test('requests in flight that end while Redis is not connected do not count any more when it is', async () => {
  const redis = await startRedisServer()
  const relay = await startRelay(redis.port)
  const limiter = await openAnsweringLimiter(`redis://127.0.0.1:${relay.port}`)
  const charges = [{ policy: exports, partitionKey: newClient() }]
  const decisions = [await limiter.decide(charges), await limiter.decide(charges)]

  await relay.set({ kind: 'refuse' })
  await eventually('Redis is not connected', () => limiter.storeState() === 'unavailable')
  for (const decision of decisions)
    for (const { reservation } of decision.outcome === 'allowed' ? decision.states : [])
      if (reservation) limiter.settle(reservation, 0)
  await relay.set({ kind: 'none' })
  await eventually('Redis is connected', () => limiter.storeState() === 'available')

  await eventually(
    'another request is allowed',
    async () => expect(await limiter.decide(charges)).toMatchObject({ outcome: 'allowed' }),
    // Redis itself forgets them after 15 seconds.
    { endMs: 10_000 },
  )
})

test.each([
  ['is a replica', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']],
  [
    'refuses the right',
    ['ACL', 'SETUSER', 'default', '-zrem', '-zadd'],
    ['ACL', 'SETUSER', 'default', '+zrem', '+zadd'],
  ],
] as const)(
  'requests in flight that end while Redis %s do not count any more when it executes commands again',
  async (_, [begin, ...begins], [end, ...ends]) => {
    const redis = await startRedisServer()
    const operator = openRedis(redis.url)
    const limiter = await openAnsweringLimiter(redis.url)
    const charges = [{ policy: exports, partitionKey: newClient() }]
    const decisions = [await limiter.decide(charges), await limiter.decide(charges)]

    await operator.call(begin, ...begins)
    for (const reservation of decisions.flatMap(reservationsOf)) limiter.settle(reservation, 0)
    await eventually('Redis is unavailable', async () => {
      await limiter.decide([{ policy: exports, partitionKey: newClient() }])
      expect(limiter.storeState()).toBe('unavailable')
    })
    await operator.call(end, ...ends)

    await eventually(
      'another request is allowed',
      async () => {
        expect(limiter.storeState()).toBe('available')
        expect(await limiter.decide(charges)).toMatchObject({ outcome: 'allowed' })
      },
      // Redis itself forgets them after 15 seconds.
      { endMs: 10_000 },
    )
  },
)

test('units that a response costs beyond its reservation are charged if Redis is not connected when it ends', async () => {
  const redis = await startRedisServer()
  const relay = await startRelay(redis.port)
  const limiter = await openAnsweringLimiter(`redis://127.0.0.1:${relay.port}`)
  const charge = { policy: tokens, partitionKey: newClient() }
  const decision = await limiter.decide([charge])
  const reservation = decision.outcome === 'allowed' ? decision.states[0]?.reservation : undefined
  if (!reservation) throw new Error('nothing was reserved')

  await relay.set({ kind: 'refuse' })
  await eventually('Redis is not connected', () => limiter.storeState() === 'unavailable')
  limiter.settle(reservation, 600)
  await relay.set({ kind: 'none' })
  await eventually('Redis is connected', () => limiter.storeState() === 'available')

  await limiter.decide([{ ...charge, partitionKey: newClient() }])
  await eventually('the units are charged', async () => {
    const [state] = await limiter.inspect([charge])
    expect(state).toMatchObject({ source: 'store', used: 600 })
    return true
  })
})

test('units that a request took while Redis was away stay counted if its response refunds them when Redis is back', async () => {
  const redis = await startRedisServer()
  const relay = await startRelay(redis.port)
  const limiter = await openAnsweringLimiter(`redis://127.0.0.1:${relay.port}`)
  const failures = makePolicy('failures', 10, 60_000, { countStatus: [{ first: 401, last: 401 }] })
  const charge = { policy: failures, partitionKey: newClient() }
  await relay.set({ kind: 'refuse' })
  await eventually('Redis is not connected', () => limiter.storeState() === 'unavailable')
  const [reservation] = reservationsOf(await limiter.decide([charge]))
  expect(reservation).toMatchObject({ isLocal: true })
  if (!reservation) throw new Error('nothing was reserved')

  await relay.set({ kind: 'none' })
  await eventually('Redis counts the request', async () => {
    await limiter.decide([{ ...charge, partitionKey: newClient() }])
    expect(await limiter.inspect([charge])).toMatchObject([{ source: 'store', used: 1 }])
  })
  limiter.settle(reservation, 0)
  await passes(100)
  expect(await limiter.inspect([charge])).toMatchObject([{ source: 'store', used: 1 }])
})
