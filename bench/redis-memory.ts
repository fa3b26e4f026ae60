import { Redis } from 'ioredis'
import { parseArgs } from 'node:util'
import type { RedisLimiter } from '../proxy/limits/store/redis/limiter.ts'
import type { Policy } from '../proxy/policy.ts'
import { freePort } from '../test/support/network/ports.ts'
import { countInRedis } from '../test/support/redis/count-in-redis.ts'
import { startServer } from './measure/processes.ts'

// The memory that Redis needs for a client under each algorithm, including its key and without its expiry (about 40 bytes):
//
//     npm run bench:redis-memory -- --server /usr/bin/valkey-server --config='--zset-max-listpack-entries 512'

const { values } = parseArgs({
  options: {
    server: { type: 'string', default: 'redis-server' },
    config: { type: 'string', default: '' },
    clients: { type: 'string', default: '300' },
  },
})
const clients = Number(values.clients)
const port = await freePort()
const given = values.config.split(' ').filter((word) => word !== '')
const args = ['--port', String(port), '--save', '', '--bind', '127.0.0.1', ...given]
const server = await startServer({ program: values.server, args }, port)
const redis = new Redis(port)
// Each limiter adds a listener for new connections.
redis.setMaxListeners(0)

const openLimiter = (): RedisLimiter =>
  countInRedis(redis, { timeoutMs: 10_000, failed: (reason) => console.error(reason) })

/** The memory of all keys, as Redis reports it, without their expiries. */
async function readMemory(): Promise<number> {
  const keys = await redis.keys('sluice:1:{*')
  const bytes = await Promise.all(keys.map((key) => redis.memory('USAGE', key, 'SAMPLES', 0)))
  return bytes.reduce((sum: number, each) => sum + (each ?? 0), 0)
}

/** The bytes for each client with this many requests. */
async function measure(algorithm: Policy['algorithm'], requests: number): Promise<number> {
  await redis.flushall()
  const policy: Policy = {
    name: 'per-client',
    quota: 10_000,
    windowMs: 600_000,
    algorithm,
    mode: 'enforce',
    onStoreError: 'closed',
    partition: [{ kind: 'ip' }],
  }
  // A new limiter each time, because the previous one would renew its requests in flight.
  const limiter = openLimiter()
  for (let request = 0; request < requests; request++) {
    const asked = Array.from({ length: clients }, (_, client) =>
      Promise.resolve(limiter.decide([{ policy, partitionKey: `198.51.${client >> 8}.${client & 255}` }])),
    )
    await Promise.all(asked)
  }
  const bytes = Math.round((await readMemory()) / clients)
  limiter.close()
  return bytes
}

const info = await redis.info('server')
console.log(/(?:valkey|redis)_version:\S+/.exec(info)?.[0] ?? '', values.config)
const measured: readonly (readonly [Policy['algorithm'], readonly number[]])[] = [
  ['fixed', [1, 200]],
  ['token-bucket', [1, 200]],
  ['sliding', [1, 10, 200, 1000]],
  ['concurrency', [1, 10, 100, 200, 500]],
]
for (const [algorithm, counts] of measured) {
  const bytes: string[] = []
  for (const requests of counts) bytes.push(`${await measure(algorithm, requests)} with ${requests}`)
  console.log(`${algorithm}: bytes a client: ${bytes.join(', ')}`)
}
redis.disconnect()
await server.stop()
