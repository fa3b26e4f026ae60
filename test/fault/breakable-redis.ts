import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { startRedisServer } from '../support/redis/redis.ts'
import type { RedisServer, RedisServerOptions } from '../support/redis/redis-server.ts'

/** A Redis server to break. It keeps its port throughout. */
export type BreakableRedis = {
  readonly port: number
  /** Runs an operator's commands on a connection opened for them. */
  operate<T>(work: (redis: Redis) => Promise<T>): Promise<T>
  signal(signal: NodeJS.Signals): Promise<void>
  /** Crashes it. It forgets everything. */
  kill(): Promise<void>
  /** Starts it again after `kill`. */
  restart(): Promise<void>
  /** Opens a connection that reconnects by itself, to Redis or to a relay's port. */
  connect(port?: number): Redis
  stop(): Promise<void>
}

export async function startBreakableRedis(): Promise<BreakableRedis> {
  let server = await start()
  const { port } = server

  function connect(throughPort = port): Redis {
    const redis = new Redis({ host: '127.0.0.1', port: throughPort })
    redis.on('error', () => undefined)
    return redis
  }

  return {
    port,
    connect,
    async operate(work) {
      const redis = connect()
      try {
        return await work(redis)
      } finally {
        redis.disconnect()
      }
    },
    signal: (signal) => server.signal(signal),
    kill: () => server.signal('SIGKILL'),
    async restart() {
      await server.stop()
      server = await start({ port })
    },
    stop: () => server.stop(),
  }
}

/** Tests here take and release many ports, so another process may briefly hold one. */
async function start(options: RedisServerOptions = {}): Promise<RedisServer> {
  for (let attempt = 1; attempt < 5; attempt++) {
    try {
      return await startRedisServer(options)
    } catch {
      await sleep(50 * attempt)
    }
  }
  return startRedisServer(options)
}
