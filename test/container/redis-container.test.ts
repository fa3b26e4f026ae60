import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { requireEngine } from '../support/containers/engine.ts'
import { launchRedisContainer } from '../support/redis/redis-container.ts'
import { passes } from '../support/wait/passes.ts'

// On machines without redis-server, the tests break such a container instead, which must break in the same ways.
test('a Redis in a container takes options, hangs, wakes up and dies on signals, and leaves nothing', async () => {
  const engine = await requireEngine()
  const server = await launchRedisContainer(engine, { args: ['--maxmemory', '8mb'] })
  const redis = new Redis(server.url, { retryStrategy: () => null })
  redis.on('error', () => undefined)
  try {
    expect(await redis.config('GET', 'maxmemory')).toEqual(['maxmemory', '8388608'])

    await server.signal('SIGSTOP')
    const pong = redis.ping()
    const late = passes(300).then(() => 'late')
    expect(await Promise.race([pong, late])).toBe('late')
    await server.signal('SIGCONT')
    expect(await pong).toBe('PONG')

    await server.signal('SIGKILL')
    await expect(redis.ping()).rejects.toThrow()
  } finally {
    redis.disconnect()
    await server.stop()
  }
  const left = await engine.container.list()
  expect(left.filter(({ Ports }) => Ports.some(({ PublicPort }) => PublicPort === server.port))).toEqual([])
})
