import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { StoreWatch } from '../../proxy/limits/store/redis/checks/store-watch.ts'
import { recordLog, recordTelemetry } from '../support/limiter/recordings.ts'
import { closeAfterTest, openRedis } from '../support/redis/redis-limiters.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import type { RedisServerOptions } from '../support/redis/redis-server.ts'
import { eventually } from '../support/wait/eventually.ts'

/* Redis loses counters and continues to answer: clients start again from zero, and without a log line nobody would know why. */

const lost = 'Redis has lost all counters: it was flushed, has evicted keys, or came back without its data'
const evicts = /^Redis evicts keys when its memory is full/
const evicted = /^Redis has evicted keys/

// On a busy machine a test outlasts the interval of the watch. With fake timers the watch looks only when the test tells it to.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }))
afterEach(() => void vi.useRealTimers())

async function startWatched(options: RedisServerOptions = {}) {
  const server = await startRedisServer(options)
  const operator = openRedis(server.url)
  const open = () => {
    const redis = openRedis(server.url)
    redis.on('error', () => undefined)
    const { log, lines } = recordLog()
    const telemetry = recordTelemetry()
    const isAnswering = (): boolean => redis.status === 'ready'
    const watch = closeAfterTest(
      new StoreWatch({ redis, keyPrefix: 'sluice:1', isAnswering, log, telemetry }),
    )
    const messages = (): string[] => lines.map(({ msg }) => msg)
    return { redis, telemetry, messages, look: () => watch.check() }
  }
  const first = open()
  await eventually('it is connected', () => first.redis.status === 'ready')
  await first.look()
  return { server, operator, open, ...first }
}

test.for([
  'noeviction',
  'allkeys-lru',
  'allkeys-lfu',
  'volatile-lru',
  'volatile-ttl',
  'volatile-random',
] as const)('the log says once whether counters can be evicted: %s', async (policy) => {
  const { operator, look, messages } = await startWatched({
    args: ['--maxmemory', '100mb', '--maxmemory-policy', policy],
  })
  await look()
  expect(messages()).toEqual(policy === 'noeviction' ? [] : [expect.stringMatching(evicts)])
  await operator.config('SET', 'maxmemory-policy', 'noeviction')
  await look()
  await operator.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await look()
  expect(messages()).toHaveLength(policy === 'noeviction' ? 1 : 2)
})

test('the log has no line about evictions if Redis has no memory limit', async () => {
  const { look, messages } = await startWatched({
    args: ['--maxmemory', '0', '--maxmemory-policy', 'allkeys-lru'],
  })
  await look()
  expect(messages()).toEqual([])
})

test('the log says that keys were evicted, and how many', async () => {
  const { operator, look, messages, telemetry } = await startWatched({
    args: ['--maxmemory', '3mb', '--maxmemory-policy', 'allkeys-random'],
  })
  expect(telemetry.evicted).toBe(0)
  const value = 'x'.repeat(10_000)
  for (let i = 0; i < 500; i++) await operator.set(`key ${i}`, value, 'PX', 60_000)
  await look()
  expect(telemetry.evicted).toBeGreaterThan(100)
  expect(messages().filter((message) => evicted.test(message))).toHaveLength(1)
})

test('every gateway logs once that Redis was flushed', async () => {
  const { operator, open, look, messages } = await startWatched()
  const other = open()
  await eventually('the other is connected', () => other.redis.status === 'ready')
  await other.look()
  await operator.flushall()
  for (let looks = 0; looks < 3; looks++) await Promise.all([look(), other.look()])
  expect(messages()).toEqual([lost])
  expect(other.messages()).toEqual([lost])
})

test('the log says that Redis came back empty', async () => {
  const { server, redis, look, messages } = await startWatched()
  await server.stop()
  await eventually('it is away', () => redis.status !== 'ready')
  await look()
  expect(messages()).toEqual([])
  await startRedisServer({ port: server.port })
  await eventually('it is said', async () => {
    await look()
    expect(messages()).toEqual([lost])
  })
})

test('the log has no line about lost counters if the gateway lacks the rights to look', async () => {
  const { server, operator } = await startWatched()
  await operator.acl('SETUSER', 'sluice', 'on', '>pw', '~sluice:*', '+@all', '-info', '-get')
  const redis = openRedis(server.url.replace('redis://', 'redis://sluice:pw@'))
  const { log, lines } = recordLog()
  const watch = closeAfterTest(
    new StoreWatch({
      redis,
      keyPrefix: 'sluice:1',
      isAnswering: () => true,
      log,
      telemetry: recordTelemetry(),
    }),
  )
  await watch.check()
  await watch.check()
  expect(lines).toEqual([])
})
