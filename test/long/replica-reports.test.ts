import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { ReplicaExchange } from '../../proxy/admin/replicas/exchange.ts'
import { describeReplicas, type ReplicaReport } from '../../proxy/admin/replicas/report.ts'
import type { ThrottledClient } from '../../proxy/limits/clients/throttled-clients.ts'
import { connectRedis } from '../../proxy/limits/store/redis/connecting/connection.ts'
import type { RedisClient } from '../../proxy/limits/store/redis/run-script.ts'
import { parseRedisUrl } from '../../proxy/limits/store/redis/connecting/url.ts'
import { startRedisCluster } from '../support/redis/redis-cluster.ts'
import { openRedis, readDocumentedRights } from '../support/redis/redis-limiters.ts'
import { freshRedis, startRedisServer } from '../support/redis/redis.ts'
import { eventually } from '../support/wait/eventually.ts'
import { passes } from '../support/wait/passes.ts'
import { wallClockMs } from '../support/calendar/wall-clock.ts'

// Replicas report to one another through Redis while an operator asks.

const log = pino({ level: 'silent' })

function limited(partitionKey: string, refusals = 1, resetMs = 60_000): ThrottledClient {
  return { policy: 'login', partitionKey, refusals, resetMs, isShadow: false }
}

type Opened = { readonly exchange: ReplicaExchange; readonly own: Omit<ReplicaReport, 'gateway'> & object }

function open(redis: RedisClient, gateway: string, clients: ThrottledClient[] = []): Opened {
  const own = { host: gateway, version: '1', tableHash: 'abc', status: 'ready', limited: clients } as const
  const exchange = new ReplicaExchange({
    redis,
    keyPrefix: 'sluice:1',
    isAnswering: () => true,
    timeoutMs: 5_000,
    gateway,
    readOwn: () => own,
    log,
  })
  onTestFinished(() => exchange.close())
  return { exchange, own }
}

async function clientsSeenBy({ exchange }: Opened): Promise<string[]> {
  const read = await exchange.read()
  return (read?.reports ?? []).flatMap(({ limited: list }) => list.map((one) => one.partitionKey)).toSorted()
}

test('the first question has the reports of all replicas, including idle ones', async () => {
  const redis = openRedis(await freshRedis())
  const first = open(redis, 'a', [limited('192.0.2.1', 3)])
  open(redis, 'b', [limited('192.0.2.2', 5)])
  open(redis, 'b', [limited('192.0.2.3', 7)])
  await eventually('all gateways have reported', async () => {
    const read = await first.exchange.read()
    expect(read?.own).toBe('a')
    expect(read?.reports.map(({ gateway }) => gateway).toSorted()).toEqual(['a', 'b', 'b'])
    expect(await clientsSeenBy(first)).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3'])
  })
  const replicas = describeReplicas((await first.exchange.read()) ?? { own: '', reports: [] })
  expect(replicas).toEqual([
    { host: 'a', self: true, version: '1', status: 'ready', tableHashes: ['abc'], workers: 1 },
    { host: 'b', self: false, version: '1', status: 'ready', tableHashes: ['abc'], workers: 2 },
  ])
})

test('replicas write nothing while nobody asks, and their reports expire', async () => {
  const redis = openRedis(await freshRedis())
  const replica = open(redis, 'a')
  // Longer than a process's interval for checking whether somebody asks.
  await passes(600)
  expect(await redis.keys('*')).toEqual([])
  await replica.exchange.read()
  const keys = (await redis.keys('*')).toSorted()
  expect(keys).toEqual(['sluice:1:{replicas}', 'sluice:1:{replicas}:asked', 'sluice:1:{replicas}:ends'])
  for (const key of keys) expect(await redis.pttl(key)).toBeGreaterThan(0)
  await eventually('the reports are gone from Redis', async () => expect(await redis.keys('*')).toEqual([]))
})

test('the list omits a replica that is gone', async () => {
  const redis = openRedis(await freshRedis())
  const [first, second] = [open(redis, 'a'), open(redis, 'b', [limited('192.0.2.2')])]
  await eventually('the other gateway reports its client', async () =>
    expect(await clientsSeenBy(first)).toEqual(['192.0.2.2']),
  )
  second.exchange.close()
  await eventually('the report of the gateway that is gone has ended', async () =>
    expect(await clientsSeenBy(first)).toEqual([]),
  )
})

test('the time left in a report shrinks by its age', async () => {
  const redis = openRedis(await freshRedis())
  const first = open(redis, 'a')
  const report = { gateway: 'b', host: 'b', version: '1', tableHash: 'c', status: 'ready' }
  const rows = [
    ['login', '192.0.2.2', 9, 60_000, 0, 'Acme'],
    ['login', '192.0.2.3', 9, 20_000, 1],
  ]
  await first.exchange.read()
  const writtenAtMs = Number((await redis.time())[0]) * 1000 - 30_000
  await redis.zadd('sluice:1:{replicas}:ends', String(writtenAtMs + 60_000), 'other')
  await redis.hset(
    'sluice:1:{replicas}',
    'other',
    `${writtenAtMs} ${JSON.stringify({ ...report, limited: rows })}`,
  )
  const others = (await first.exchange.read())?.reports.filter(({ gateway }) => gateway === 'b')
  expect(others).toHaveLength(1)
  expect(others?.[0]?.limited).toEqual([
    {
      policy: 'login',
      partitionKey: '192.0.2.2',
      refusals: 9,
      resetMs: expect.any(Number) as number,
      isShadow: false,
      label: 'Acme',
    },
  ])
  expect(others?.[0]?.limited[0]?.resetMs).toBeLessThanOrEqual(30_000)
})

test('malformed reports are ignored', async () => {
  const redis = openRedis(await freshRedis())
  const first = open(redis, 'a')
  await first.exchange.read()
  const texts = ['', '1', '1 {', '1 null', '1 {"gateway":"b"}', 'x {}']
  for (const [index, text] of texts.entries()) {
    // By the clock of Redis: that of this machine or of its container.
    await redis.zadd('sluice:1:{replicas}:ends', String(wallClockMs() + 600_000), `other ${index}`)
    await redis.hset('sluice:1:{replicas}', `other ${index}`, text)
  }
  expect((await first.exchange.read())?.reports.map(({ gateway }) => gateway)).toEqual(['a'])
})

test('the list has at most 128 reports', async () => {
  const redis = openRedis(await freshRedis())
  for (let index = 0; index < 128; index++)
    // By the clock of Redis: that of this machine or of its container.
    await redis.zadd('sluice:1:{replicas}:ends', String(wallClockMs() + 600_000), `other ${index}`)
  expect((await open(redis, 'a').exchange.read())?.reports).toEqual([])
  expect(await redis.hlen('sluice:1:{replicas}')).toBe(0)
})

test('without Redis, or rights to it, there is no answer', async () => {
  const server = await startRedisServer()
  const operator = openRedis(server.url)
  const { counting, runTime } = readDocumentedRights()
  await operator.call('ACL', 'SETUSER', 'sluice', 'on', '>password', ...counting, ...runTime)
  const redis = openRedis(server.url.replace('//', '//sluice:password@'))
  const replica = open(redis, 'a')
  // The rights that the documentation names are sufficient.
  expect(await replica.exchange.read()).toMatchObject({ own: 'a', reports: [{ gateway: 'a' }] })
  await operator.call('ACL', 'SETUSER', 'sluice', '-hset')
  expect(await replica.exchange.read()).toBeUndefined()
  await operator.call('ACL', 'SETUSER', 'sluice', '+hset')
  expect(await replica.exchange.read()).toMatchObject({ own: 'a' })
  await server.signal('SIGSTOP')
  expect(await replica.exchange.read()).toBeUndefined()
  await server.signal('SIGCONT')
})

test('replicas on a cluster hear of one another', async () => {
  const cluster = await startRedisCluster(3, 0)
  onTestFinished(() => cluster.close())
  const connection = connectRedis(parseRedisUrl(cluster.url), log)
  onTestFinished(() => connection.close())
  await connection.connected(20_000)
  const redis = connection.client
  const first = open(redis, 'a')
  open(redis, 'b', [limited('192.0.2.2')])
  await eventually('the other gateway reports its client', async () =>
    expect(await clientsSeenBy(first)).toEqual(['192.0.2.2']),
  )
})
