import { networkInterfaces } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Charge } from '../../proxy/limits/limiter.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce, decideForEach } from '../support/limiter/decisions.ts'
import { startRedisLimiter, waitUntilAnswering, type RunningLimiter } from '../support/limiter/limiters.ts'
import { CLOSED_PORT, freePort } from '../support/network/ports.ts'
import { countInRedis } from '../support/redis/count-in-redis.ts'
import { startRedisCluster, type RedisCluster } from '../support/redis/redis-cluster.ts'
import { startSentinel } from '../support/redis/redis-sentinel.ts'
import {
  closeAfterTest,
  openLimiter,
  openRedis,
  readDocumentedRights,
} from '../support/redis/redis-limiters.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { untilMatches } from '../support/wait/until-matches.ts'

const login = makePolicy('login', 30, 60_000)
const wide = makePolicy('wide', 100, 60_000)

async function startReplicas(url: string): Promise<RunningLimiter[]> {
  // Thousands of concurrent requests take a while on a busy machine; with a shorter timeout, local counters would decide.
  const replicas = [startRedisLimiter(url, 20_000), startRedisLimiter(url, 20_000)]
  await Promise.all(replicas.map(({ connection }) => connection.connected(20_000)))
  return replicas
}

describe('a cluster', () => {
  let cluster: RedisCluster
  let replicas: RunningLimiter[] = []
  let first: RunningLimiter

  beforeAll(async () => {
    cluster = await startRedisCluster(3, 0)
    replicas = await startReplicas(cluster.url)
    first = replicas[0] as RunningLimiter
    // Makes every node load the scripts, as otherwise each of thousands of commands would carry their text.
    await decideForEach(first, Array.from({ length: 50 }, newClient), [login, wide])
  })
  // After a stall of the machine, connections have timed out and are being reopened.
  beforeEach(() => Promise.all(replicas.map(waitUntilAnswering)))
  afterAll(() => {
    replicas.forEach((replica) => replica.close())
    cluster.close()
  })

  test('a cluster decides exactly for many clients at once, with all the rules of each in one command', async () => {
    const clients = Array.from({ length: 100 }, newClient)
    const answers = await Promise.all(
      clients.map((client) => decideAtOnce(replicas, 40, chargeAll(client, [login, wide]))),
    )
    for (const { telemetry, logLines } of replicas)
      expect(telemetry, JSON.stringify(logLines)).toMatchObject({ failures: 0, breaker: [] })
    expect(answers.map(countAllowed)).toEqual(clients.map(() => 30))
    const left = await decideForEach(first, clients, [wide])
    for (const decision of left) expect(decision).toMatchObject({ states: [{ remaining: 69 }] })
  })

  test('a cluster refunds the counts on one node if another node refuses the request', async () => {
    const byKey = makePolicy('by-key', 3, 60_000)
    const client = newClient()
    const charges: Charge[] = [
      { policy: wide, partitionKey: client },
      { policy: byKey, partitionKey: `h:${client}` },
      { policy: login, partitionKey: client },
    ]
    const decisions = []
    for (let i = 0; i < 10; i++) decisions.push(await first.decide(charges))
    expect(decisions[0]).toMatchObject({
      outcome: 'allowed',
      states: [
        { policy: wide, remaining: 99 },
        { policy: byKey, remaining: 2 },
        { policy: login, remaining: 29 },
      ],
    })
    expect(countAllowed(decisions)).toBe(3)
    const [, , , refused] = decisions
    expect(refused).toMatchObject({
      outcome: 'refused',
      refusedBy: byKey,
      states: [{ remaining: 97 }, { exceeded: true, remaining: 0 }, { remaining: 27 }],
    })
    expect(await first.decide(chargeAll(client, [wide, login]))).toMatchObject({
      states: [{ remaining: 96 }, { remaining: 26 }],
    })
  })

  test('a cluster takes back from a sliding window the very admission that another node refuses', async () => {
    const sliding = makePolicy('sliding', 50, 60_000, { algorithm: 'sliding' })
    const byKey = makePolicy('by-key', 3, 60_000, { algorithm: 'sliding' })
    const client = newClient()
    const charges: Charge[] = [
      { policy: sliding, partitionKey: client },
      { policy: byKey, partitionKey: `h:${client}` },
    ]
    const outcomes = await Promise.all([
      decideAtOnce(replicas, 40, charges),
      ...Array.from({ length: 10 }, async () => first.decide(chargeAll(client, [sliding]))),
    ])
    const allowed = outcomes.flat()
    expect(countAllowed(allowed)).toBe(13)
    expect(await first.connection.client.llen(`sluice:1:{${client}}:sliding:60000:sliding`)).toBe(13)
    expect(await first.connection.client.llen(`sluice:1:{h:${client}}:by-key:60000:sliding`)).toBe(3)

    const refused = await first.decide([...charges].reverse())
    expect(refused).toMatchObject({ outcome: 'refused', refusedBy: byKey })
    expect(await first.decide(chargeAll(client, [sliding]))).toMatchObject({ states: [{ remaining: 36 }] })
  })

  test('a cluster never lets more than the quota through where the rules count by different keys, at once', async () => {
    const byKey = makePolicy('by-key', 7, 60_000)
    const client = newClient()
    const charges: Charge[] = [
      { policy: login, partitionKey: client },
      { policy: byKey, partitionKey: `h:${client}` },
    ]
    // If one rule refuses a request, the units that another rule counted for it are given back later, and are missing until then.
    let admitted = countAllowed(await decideAtOnce(replicas, 200, charges))
    expect(admitted).toBeLessThanOrEqual(7)
    const deadlineMs = performance.now() + 5000
    while (admitted < 7 && performance.now() < deadlineMs) {
      admitted += countAllowed(await decideAtOnce(replicas, 2, charges))
      await sleep(10)
    }
    expect(countAllowed(await decideAtOnce(replicas, 20, charges))).toBe(0)
    expect(admitted).toBe(7)
  })

  test('gateways of different namespaces have separate counts', async () => {
    const shop = openLimiter(cluster.url, 20_000, 'shop')
    await shop.connection.connected(20_000)
    const client = newClient()
    const charges = [...chargeAll(client, [login]), ...chargeAll(`h:${client}`, [wide])]
    expect(countAllowed(await decideAtOnce([first, shop], 80, charges))).toBe(60)
    const inShop = `sluice:shop:1:{${client}}:login:60000`
    expect(await shop.connection.client.get(inShop)).toBe('30')
    const added = [
      { policy: login, partitionKey: client, counted: [2], endsAtMs: performance.now() + 60_000 },
    ]
    const alone = countInRedis(shop.connection.client, { keyPrefix: 'sluice:shop:1' })
    expect(await alone.addOnce('once', added)).toBe(true)
    expect(await alone.addOnce('once', added)).toBe(true)
    expect(await shop.connection.client.get(inShop)).toBe('32')
    expect(await first.connection.client.get(`sluice:1:{${client}}:login:60000`)).toBe('30')
  })

  test('a cluster needs no more than the rights in docs/redis.md, of a user with any password', async () => {
    const { counting, cluster: moving } = readDocumentedRights()
    for (const { operator } of cluster.nodes)
      await operator.call('ACL', 'SETUSER', 'sluice', 'on', '>p@ss/w:r d', ...counting, ...moving)
    const user = 'sluice:p%40ss%2Fw%3Ar%20d@'
    const [limited] = (await startReplicas(cluster.url.replace('://', `://${user}`))).map(closeAfterTest)
    if (!limited) throw new Error('not started')
    for (const client of Array.from({ length: 10 }, newClient))
      expect(countAllowed(await decideAtOnce([limited], 40, chargeAll(client, [wide, login])))).toBe(30)
    expect(limited.telemetry).toMatchObject({ failures: 0 })
  })

  test('a cluster adds the requests admitted during an outage, on every node', async () => {
    const clients = Array.from({ length: 30 }, newClient)
    const sliding = makePolicy('two', 2, 60_000, { algorithm: 'sliding' })
    const nowMs = performance.now()
    const debt = clients.flatMap((partitionKey) => [
      { policy: login, partitionKey, counted: [30], endsAtMs: nowMs + 30_000 },
      { policy: sliding, partitionKey, counted: [nowMs - 2000, nowMs - 1000], endsAtMs: nowMs + 59_000 },
    ])
    const limiter = countInRedis(first.connection.client)
    expect(await limiter.addOnce('debt', debt)).toBe(true)
    expect(await limiter.addOnce('debt', debt)).toBe(true)
    expect(countAllowed(await decideForEach(first, clients, [login]))).toBe(0)
    expect(countAllowed(await decideForEach(first, clients, [sliding]))).toBe(0)
  })
})

describe('a log line', () => {
  test.each([
    ['redis+cluster', '', /^connect ECONNREFUSED 127\.0\.0\.1:/],
    ['redis+sentinel', '/main', /^sentinel 127\.0\.0\.1:\d+: connect ECONNREFUSED 127\.0\.0\.1:/],
  ])('a log line says once why %s cannot be reached', async (scheme, path, reason) => {
    const limiter = openLimiter(`${scheme}://127.0.0.1:${CLOSED_PORT}${path}`)
    await limiter.connection.connected(500)
    expect(limiter.logLines).toMatchObject([{ msg: 'cannot connect to Redis; retrying' }])
    expect(limiter.logLines[0]?.reason).toMatch(reason)
  })
})

describe('Sentinel', () => {
  test('Sentinel leads to the master, and the login is used there', async () => {
    const users = ['--user', 'sluice', 'on', '>s3cret:', '+@all', '~*', '--requirepass', 'secret']
    const master = await startRedisServer({ args: users })
    const lines = ['sentinel auth-pass main secret']
    const { port } = await startSentinel({ masterPort: master.port, lines })
    const url = `redis+sentinel://sluice:s3cret%3A@127.0.0.1:${port}/main/3`
    const replicas = (await startReplicas(url)).map(closeAfterTest)
    const client = newClient()
    expect(countAllowed(await decideAtOnce(replicas, 80, chargeAll(client, [login])))).toBe(30)
    const redis = openRedis(`redis://:secret@127.0.0.1:${master.port}/3`)
    expect(await redis.get(`sluice:1:{${client}}:login:60000`)).toBe('30')
  })
})

describe('IPv6', () => {
  const hasLoopback = Object.values(networkInterfaces())
    .flat()
    .some((address) => address?.address === '::1')

  test.skipIf(!hasLoopback)('an IPv6 address leads to a server, and to the nodes of a cluster', async () => {
    const server = await startRedisServer({ args: ['--bind', '127.0.0.1', '::1'] })
    const busPort = String(await freePort())
    const cluster = ['--cluster-enabled', 'yes', '--cluster-port', busPort, '--cluster-announce-ip', '::1']
    const node = await startRedisServer({
      args: ['--bind', '127.0.0.1', '::1', '--databases', '1', ...cluster],
    })
    const operator = openRedis(node.url)
    await operator.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
    await untilMatches(() => operator.cluster('INFO'), /cluster_state:ok/)
    for (const url of [`redis://[::1]:${server.port}/7`, `redis+cluster://[::1]:${node.port}`]) {
      const replicas = (await startReplicas(url)).map(closeAfterTest)
      expect(countAllowed(await decideAtOnce(replicas, 80, chargeAll(newClient(), [login]))), url).toBe(30)
      expect(replicas[0]?.telemetry, url).toMatchObject({ failures: 0 })
    }
  })
})
