import { Redis } from 'ioredis'
import {
  launchRedisServer,
  obtainRedisBinary,
  type RedisServer,
  type RedisServerOptions,
} from './redis-server.ts'
import { atEndOfFile } from '../run/at-end.ts'

const servers = new Set<RedisServer>()

atEndOfFile(async () => {
  await Promise.all([...servers].map((server) => server.stop()))
  servers.clear()
})

/**
 * Empties this test file's database of the shared Redis and returns its URL. If `REDIS_URL` named the Redis, a database that contains
 * anything but Sluice's own keys is left alone, and this rejects.
 */
export async function freshRedis(): Promise<string> {
  const url = databaseOfThisFile()
  const redis = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0 })
  try {
    await redis.connect()
    const key = await redis.randomkey()
    if (process.env['REDIS_URL'] && key !== null && !key.startsWith('sluice:')) {
      throw new Error(
        `The tests empty ${url}, but it holds the key ${key}: set REDIS_URL to a Redis of their own.`,
      )
    }
    await redis.flushdb()
  } finally {
    redis.disconnect()
  }
  return url
}

/** The shared Redis, with the number of a database that no test file running at the same time uses. */
function databaseOfThisFile(): string {
  const shared = process.env['SHARED_TEST_REDIS_URL']
  const slot = process.env['VITEST_POOL_ID']
  if (!shared || !slot)
    throw new Error('The shared Redis is there only for projects with test/support/run/global-setup.ts')
  const url = new URL(shared)
  url.pathname = `/${slot}`
  return url.href
}

/**
 * Starts a Redis for this test file alone, which the tests may suspend, kill and restart. Runs the machine's own `redis-server` if there is
 * one, otherwise a container. It is ended after the file's last test if it still runs then.
 */
export async function startRedisServer(options: RedisServerOptions = {}): Promise<RedisServer> {
  const server = await launch(options)
  servers.add(server)
  return {
    ...server,
    stop: async () => {
      servers.delete(server)
      await server.stop()
    },
  }
}

async function launch(options: RedisServerOptions): Promise<RedisServer> {
  const binary = obtainRedisBinary()
  if (binary !== undefined) return launchRedisServer(binary, options)
  // Loaded lazily, as the engine's client library takes longer to load than most test files take to run.
  const { findRedisEngine, launchRedisContainer } = await import('./redis-container.ts')
  const engine = await findRedisEngine()
  if (engine) return launchRedisContainer(engine, options)
  throw new Error(
    'This test needs a Redis of its own to break: install redis-server, or start a container engine.',
  )
}
