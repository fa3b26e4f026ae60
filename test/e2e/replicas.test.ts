import { Agent } from 'node:http'
import { afterAll, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startGateway } from '../support/gateway/gateway.ts'
import { openRedis } from '../support/redis/redis-limiters.ts'
import { freshRedis } from '../support/redis/redis.ts'

const clients = Array.from({ length: 12 }, (_, i) => `127.0.0.${i + 1}`)
const allowed = 30
/** Enough that each of the three replicas, if it counted alone, would admit as many requests as all three may together. */
const attempts = 3 * 33

// Connections from each client to each replica are reused: a new one for each of two thousand requests would take most of the time.
const agent = new Agent({ keepAlive: true, maxSockets: 16 })
afterAll(() => agent.destroy())

test('three replicas enforce one table, and keep their counts over a crash', async () => {
  const arrived = new Map<string, number>()
  const backend = await startBackend((request, response) => {
    const client = String(request.headers['x-real-ip'])
    arrived.set(client, (arrived.get(client) ?? 0) + 1)
    response.end('ok')
  })
  const env = { UPSTREAM_URL: backend.url, REDIS_URL: await freshRedis() }
  let replicas = await Promise.all([1, 2, 3].map(() => startGateway(env)))
  /** Makes every client send `each` requests, over 16 concurrent connections to each replica. */
  const rush = async (each: number): Promise<number[]> => {
    const statuses = clients.flatMap((from) =>
      Array.from({ length: each }, async (_, i) => {
        const replica = replicas[i % replicas.length]
        return (await replica?.send('POST', '/login', { from, agent }))?.status ?? 0
      }),
    )
    return Promise.all(statuses)
  }

  const first = await rush(attempts)
  expect(first.filter((status) => status === 200)).toHaveLength(clients.length * allowed)
  expect(first.filter((status) => status === 429)).toHaveLength(clients.length * (attempts - allowed))
  expect([...arrived].sort()).toEqual(clients.map((client) => [client, allowed]).sort())

  await Promise.all(replicas.map((replica) => replica.process.stop('SIGKILL')))
  replicas = [await startGateway(env)]
  expect(new Set(await rush(30))).toEqual(new Set([429]))
  expect([...arrived.values()].every((count) => count === allowed)).toBe(true)

  const redis = openRedis(env.REDIS_URL)
  const keys = await redis.keys('*')
  expect(keys.length).toBeGreaterThanOrEqual(clients.length)
  for (const key of keys) {
    expect(key).toMatch(/^sluice:/)
    expect(await redis.pttl(key), key).toBeGreaterThan(0)
  }
})
