import { expect, test } from 'vitest'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed } from '../support/limiter/decisions.ts'
import { waitUntilAnswering } from '../support/limiter/limiters.ts'
import { startRedisCluster } from '../support/redis/redis-cluster.ts'
import { openLimiter, openRedis } from '../support/redis/redis-limiters.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { startShardingProxy } from '../support/redis/sharding-proxy.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * A proxy in front of several servers routes a command by its first key. A command with the counters of many clients counts all of them on
 * the first client's server. A client then has a counter on each server, and its quota once per server, without any error.
 */

const login = makePolicy('login', 5, 60_000)

const givenUp = 'Redis unavailable: circuit breaker open, applying onStoreError'

test.for([2, 3, 8])(
  'counters are not shared through a proxy before %i servers, and the log says why',
  async (count) => {
    const servers = await Promise.all(Array.from({ length: count }, () => startRedisServer()))
    const port = await startShardingProxy(servers.map((server) => server.port))
    const limiter = openLimiter(`redis://127.0.0.1:${port}`)
    await eventually('it is given up', () => limiter.telemetry.breaker.includes('open'))
    expect(limiter.logLines.filter(({ msg }) => msg === givenUp)).toMatchObject([
      {
        reason: expect.stringMatching(/^a proxy at this address distributes keys.*redis\+cluster/) as string,
      },
    ])
    // As without Redis, each of many concurrent clients gets exactly its quota here.
    const clients = Array.from({ length: 40 }, newClient)
    const decisions = await Promise.all(
      clients.flatMap((client) =>
        Array.from({ length: 20 }, async () => limiter.decide(chargeAll(client, [login]))),
      ),
    )
    expect(countAllowed(decisions)).toBe(40 * login.quota)
    // The circuit breaker stays open after further looks at Redis.
    await eventually('it has been looked at again', async () => {
      const looked = await Promise.all(
        servers.map(async (server) =>
          /cmdstat_eval:calls=(\d+)/.exec(await openRedis(server.url).info('commandstats')),
        ),
      )
      expect(looked.reduce((sum, found) => sum + Number(found?.[1] ?? 0), 0)).toBeGreaterThan(12)
    })
    expect(limiter.telemetry.breaker).toEqual(['open'])
  },
)

test('counters are not shared through a proxy that is slow at first', async () => {
  const servers = await Promise.all([startRedisServer(), startRedisServer()])
  const port = await startShardingProxy(
    servers.map((server) => server.port),
    { delayMs: 400 },
  )
  const limiter = openLimiter(`redis://127.0.0.1:${port}`)
  await eventually('it is given up', () => limiter.telemetry.breaker.includes('open'))
  expect(limiter.logLines.filter(({ msg }) => msg === givenUp)).toMatchObject([
    { reason: expect.stringMatching(/^a proxy at this address distributes keys/) as string },
  ])
})

test('counters are shared through a proxy before one server', async () => {
  const server = await startRedisServer()
  const port = await startShardingProxy([server.port])
  const limiter = openLimiter(`redis://127.0.0.1:${port}`)
  await waitUntilAnswering(limiter)
  const operator = openRedis(server.url)
  await eventually('it was checked', async () =>
    expect(await operator.info('commandstats')).toMatch(/cmdstat_del:calls=\d/),
  )
  await Promise.all(Array.from({ length: 9 }, async () => limiter.decide(chargeAll('ip:192.0.2.1', [login]))))
  expect(await operator.get('sluice:1:{ip:192.0.2.1}:login:60000')).toBe('5')
  expect(limiter.telemetry.breaker).toEqual([])
  await eventually('the keys of the check are deleted', async () =>
    expect(await operator.keys('*:probe:*')).toEqual([]),
  )
})

test('counters are not shared through a node of a cluster, and the log names redis+cluster://', async () => {
  const cluster = await startRedisCluster(2, 0)
  const limiter = openLimiter(`redis://127.0.0.1:${cluster.nodes[0]?.port}`)
  await eventually('it is given up', () => limiter.telemetry.breaker.includes('open'))
  expect(limiter.logLines.find(({ msg }) => msg === givenUp)?.reason).toMatch(
    /^(CROSSSLOT|MOVED) .*REDIS_URL has to begin with redis\+cluster:\/\//,
  )
})
