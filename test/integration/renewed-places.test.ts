import { expect, test } from 'vitest'
import { LEASE_MS } from '../../proxy/limits/algorithms/concurrency/concurrency.ts'
import { makePolicy, newClient } from '../support/limiter/charges.ts'
import { reservationsOf } from '../support/limiter/decisions.ts'
import { startRelay } from '../support/network/relay.ts'
import { openAnsweringLimiter, openRedis } from '../support/redis/redis-limiters.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { eventually } from '../support/wait/eventually.ts'
import { passes } from '../support/wait/passes.ts'

/*
 * A gateway renews its requests in flight every four seconds. After `SCRIPT FLUSH` Redis replies that it does not know the script, though
 * it may already know the one that ends requests.
 */

const exports = makePolicy('exports', 3, LEASE_MS, { algorithm: 'concurrency' })

test(
  'a request in flight that ends before its renewal is sent again to a Redis without the script counts no longer',
  { timeout: 20_000 },
  async () => {
    const server = await startRedisServer()
    const redis = openRedis(server.url)
    const relay = await startRelay(server.port)
    const limiter = await openAnsweringLimiter(`redis://127.0.0.1:${relay.port}`)
    const partitionKey = newClient()
    const charges = [{ policy: exports, partitionKey }]
    const decisions = [
      await limiter.decide(charges),
      await limiter.decide(charges),
      await limiter.decide(charges),
    ]
    const [first, second, third] = decisions.flatMap(reservationsOf)
    if (!first || !second || !third) throw new Error('nothing was reserved')
    const key = `sluice:1:{${partitionKey}}:exports:in-flight`
    const readNames = (): Promise<string[]> => redis.zrange(key, '0', '-1')
    const readUnknownScripts = async (): Promise<number> =>
      Number(/^errorstat_NOSCRIPT:count=(\d+)/m.exec(await redis.info('errorstats'))?.[1] ?? 0)

    await redis.script('FLUSH')
    limiter.settle(first, 0)
    await eventually('Redis knows the script of ends', async () => expect(await readNames()).toHaveLength(2))
    const unknown = await readUnknownScripts()
    await relay.set({ kind: 'delay', delayMs: 300 })
    const renewed = async (): Promise<void> => expect(await readUnknownScripts()).toBeGreaterThan(unknown)
    await eventually('Redis is asked for the renewal', renewed, { endMs: 8_000 })
    const renewedAtMs = Number((await redis.time())[0]) * 1000
    limiter.settle(second, 0)
    await eventually('the second request has ended', async () => expect(await readNames()).toHaveLength(1))

    await eventually('the third request is renewed', async () =>
      expect(Number(await redis.zscore(key, String(third.ticket)))).toBeGreaterThanOrEqual(
        renewedAtMs + LEASE_MS,
      ),
    )
    await passes(500)
    expect(await readNames()).toEqual([third.ticket])
  },
)
