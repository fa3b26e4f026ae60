import { Redis } from 'ioredis'
import { startSentinel, type Sentinel } from './redis-sentinel.ts'
import type { RedisServer } from './redis-server.ts'
import { startRedisServer } from './redis.ts'
import { untilMatches } from '../wait/until-matches.ts'

/** A master with two replicas, and three sentinels that monitor them. */
export type SentinelTrio = {
  readonly url: string
  readonly servers: readonly RedisServer[]
  readonly sentinels: readonly Sentinel[]
  /** The server that the sentinels name as master; undefined while they name none of these servers. */
  findMaster(): Promise<RedisServer | undefined>
  /** Sends a command to a running sentinel. */
  tellSentinel(...command: readonly [string, ...(string | number)[]]): Promise<unknown>
}

/**
 * How long the master must be silent before a sentinel considers it down. Sentinels ping once a second. With a value of one second, in 3 of
 * 48 runs they considered the master that they had just elected down too, and elected another.
 */
const downAfterMs = 2500

/** Starts all six and waits until they know each other. They end after the file's last test. */
export async function startSentinelTrio(): Promise<SentinelTrio> {
  const common = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1']
  const master = await startRedisServer({ args: common })
  const replicaOf = ['--replicaof', '127.0.0.1', String(master.port)]
  const replicas = await Promise.all([1, 2].map(() => startRedisServer({ args: [...common, ...replicaOf] })))
  const servers = [master, ...replicas]
  const operator = new Redis(master.port)
  const isSynchronous = /slave0:.*state=online.*\s+slave1:.*state=online/
  await untilMatches(() => operator.info('replication'), isSynchronous)
  operator.disconnect()

  const lines = [
    `sentinel down-after-milliseconds main ${downAfterMs}`,
    'sentinel failover-timeout main 3000',
    'sentinel parallel-syncs main 2',
  ]
  const sentinels = await Promise.all(
    [1, 2, 3].map(() => startSentinel({ masterPort: master.port, quorum: 2, lines })),
  )

  async function ask(sentinel: Sentinel, command: readonly [string, ...(string | number)[]]) {
    const options = { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null }
    const client = new Redis(sentinel.port, { ...options, commandTimeout: 500, enableReadyCheck: false })
    client.on('error', () => undefined)
    try {
      await client.connect()
      return await client.call(...command)
    } finally {
      client.disconnect()
    }
  }

  async function tellSentinel(...command: readonly [string, ...(string | number)[]]): Promise<unknown> {
    for (const sentinel of sentinels.toReversed()) {
      try {
        return await ask(sentinel, command)
      } catch (error) {
        if (error instanceof Error && error.name === 'ReplyError') throw error
      }
    }
    throw new Error('no sentinel answers')
  }

  for (const sentinel of sentinels) {
    const known = async (): Promise<string> => String(await ask(sentinel, ['SENTINEL', 'MASTER', 'main']))
    await untilMatches(known, /num-slaves,2,num-other-sentinels,2,/)
  }
  return {
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join()}/main`,
    servers,
    sentinels,
    tellSentinel,
    async findMaster() {
      const address = await tellSentinel('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main')
      const port = Array.isArray(address) ? Number(address[1]) : 0
      return servers.find((server) => server.port === port)
    },
  }
}
