import { Cluster } from 'ioredis'
import { expect, test } from 'vitest'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import { waitUntilAnswering } from '../support/limiter/limiters.ts'
import { freePort } from '../support/network/ports.ts'
import { startRedisCluster } from '../support/redis/redis-cluster.ts'
import { closeAfterTest, openLimiter } from '../support/redis/redis-limiters.ts'
import { eventually } from '../support/wait/eventually.ts'

const login = makePolicy('login', 5, 60_000)

/*
 * All nodes of a cluster are replaced at once and get new addresses, as when pods are recreated. Only the hosts in `REDIS_URL` are left to
 * find them by.
 */
test('a cluster whose nodes all have new addresses is found again', async () => {
  const before = await startRedisCluster(3, 1)
  const laterPort = await freePort()
  const [first] = before.nodes
  const limiter = openLimiter(`redis+cluster://127.0.0.1:${first?.port},127.0.0.1:${laterPort}`, 100)
  await limiter.connection.connected(5000)
  expect(countAllowed(await decideAtOnce([limiter], 9, chargeAll(newClient(), [login])))).toBe(5)

  before.close()
  await Promise.all(before.nodes.map((node) => node.stop()))
  const client = newClient()
  for (let asked = 0; asked < 9; asked++) await limiter.decide(chargeAll(client, [login]))
  await eventually('Redis is given up', () => limiter.storeState() === 'unavailable')

  closeAfterTest(await startRedisCluster(3, 0, laterPort))
  await waitUntilAnswering(limiter)
  expect(await limiter.decide(chargeAll(client, [login]))).toMatchObject({ outcome: 'refused' })
  expect(countAllowed(await decideAtOnce([limiter], 9, chargeAll(newClient(), [login])))).toBe(5)
  const reasons = limiter.logLines.map(({ reason = '' }) => reason)
  expect(reasons).toContainEqual(expect.stringMatching(/^connect ECONNREFUSED/))
  expect(limiter.logLines.length).toBeLessThan(20)
})

test('a connection that was cut is opened again before the next request needs it', async () => {
  const cluster = closeAfterTest(await startRedisCluster(3, 0))
  const limiter = openLimiter(cluster.url, 100)
  await limiter.connection.connected(5000)
  const { client: connections } = limiter.connection
  if (!(connections instanceof Cluster)) throw new Error('no cluster')
  const isWhole = (): boolean => {
    const masters = connections.nodes('master')
    return masters.length === 3 && masters.every(({ status }) => status === 'ready')
  }
  for (const { operator } of cluster.nodes) {
    await operator.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await eventually('the loss is noticed', () => !isWhole())
    await eventually('all are connected again', isWhole)
  }
  for (const client of Array.from({ length: 30 }, newClient))
    expect(countAllowed(await decideAtOnce([limiter], 9, chargeAll(client, [login])))).toBe(5)
  expect(limiter.telemetry).toMatchObject({ failures: 0 })
})
