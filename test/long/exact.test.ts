import { Agent, request as httpRequest } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { startRedisCluster } from '../support/redis/redis-cluster.ts'
import { startSentinelTrio } from '../support/redis/redis-trio.ts'
import { startRedisServer } from '../support/redis/redis.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

/*
 * Three replicas together admit exactly the quota, no matter how many requests are concurrent. EXACT_REPETITIONS sets how often each case
 * is tried, once by default.
 */

const repetitions = Number(process.env['EXACT_REPETITIONS'] ?? 1)
const clientsInAll = 20
/** How many clients send all their requests at the same time. More would exhaust the test's own sockets. */
const clientsAtOnce = 4
const requestsEach = 500
const allowed = 30
const limits = `limits:
  - { name: fixed, match: POST /fixed, requests: ${allowed}, window: 15m }
  - { name: sliding, match: POST /sliding, requests: ${allowed}, window: 15m, algorithm: sliding }
`

let backend: Backend
const arrived = new Map<string, number>()

beforeAll(async () => {
  backend = await startBackend((request, response) => {
    const client = `${request.url ?? ''} ${String(request.headers['x-real-ip'])}`
    arrived.set(client, (arrived.get(client) ?? 0) + 1)
    response.end()
  })
})

const topologies = [
  { name: 'one server', start: async () => `redis://127.0.0.1:${(await startRedisServer()).port}` },
  { name: 'Sentinel', start: async () => (await startSentinelTrio()).url },
  { name: 'a cluster', start: async () => (await startRedisCluster(3, 1)).url },
]

describe.each(topologies)('three replicas on $name', ({ start }) => {
  const agent = new Agent({ keepAlive: true })
  let replicas: readonly GatewayProcess[]

  beforeAll(async () => {
    const env = {
      UPSTREAM_URL: backend.url,
      REDIS_URL: await start(),
      CONFIG_FILE: writeConfigFile(limits),
      TRUSTED_PROXIES: '127.0.0.1',
      // Thousands of concurrent requests in the first second of the processes: on a busy machine, replies would take longer than the usual
      // 100 ms, and onStoreError would decide.
      STORE_TIMEOUT: '5s',
    }
    replicas = await Promise.all([1, 2, 3].map(() => startGateway(env)))
  })

  afterAll(async () => {
    agent.destroy()
    await Promise.all(replicas.map((replica) => replica.process.stop('SIGTERM')))
  })

  function ask(path: string, client: string, turn: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const request = httpRequest({
        agent,
        host: '127.0.0.1',
        port: replicas[turn % replicas.length]?.port,
        method: 'POST',
        path,
        headers: { 'x-forwarded-for': client, 'content-length': 0 },
      })
      request.on('error', reject)
      request.on('response', (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode ?? 0))
      })
      request.end()
    })
  }

  test.each(['/fixed', '/sliding'])('%s', { timeout: 30_000 * repetitions }, async (path) => {
    for (let repetition = 0; repetition < repetitions; repetition++) {
      for (let first = 0; first < clientsInAll; first += clientsAtOnce) {
        const clients = Array.from({ length: clientsAtOnce }, (_, i) => `10.${repetition}.0.${first + i}`)
        arrived.clear()
        const statuses = await Promise.all(
          Array.from({ length: requestsEach }, (_, turn) => turn).flatMap((turn) =>
            clients.map((client) => ask(path, client, turn)),
          ),
        )
        const counts = Object.fromEntries(
          [...new Set(statuses)].map((status) => [status, statuses.filter((s) => s === status).length]),
        )
        expect(counts).toEqual({
          200: allowed * clientsAtOnce,
          429: (requestsEach - allowed) * clientsAtOnce,
        })
        expect(Object.fromEntries(arrived)).toEqual(
          Object.fromEntries(clients.map((client) => [`${path} ${client}`, allowed])),
        )
      }
    }
  })
})
