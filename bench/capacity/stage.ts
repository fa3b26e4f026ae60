import { Redis } from 'ioredis'
import { pino } from 'pino'
import type { Charge } from '../../proxy/limits/limiter.ts'
import { connectRedis } from '../../proxy/limits/store/redis/connecting/connection.ts'
import { parseRedisUrl } from '../../proxy/limits/store/redis/connecting/url.ts'
import type { RedisLimiter } from '../../proxy/limits/store/redis/limiter.ts'
import type { Policy } from '../../proxy/policy.ts'
import { countInRedis } from '../../test/support/redis/count-in-redis.ts'
import { readCpuUs, startRedis } from '../measure/redis-servers.ts'
import type { MeasuredAlgorithm } from './costs.ts'

/** Redis servers on this machine, with the limiters of several gateways. */
export type Stage = {
  readonly limiters: readonly RedisLimiter[]
  readonly pids: readonly number[]
  /** Microseconds of CPU that the servers have used since they started. */
  readCpuUs(): number
  /** The sum of a figure of `INFO` over all servers. */
  readInfo(section: string, figure: RegExp): Promise<number>
  readonly version: string
  flush(): Promise<void>
  close(): Promise<void>
}

/** @param masters the number of masters of a cluster; 0 for a single server */
export async function openStage(masters: number, gateways: number): Promise<Stage> {
  const { url, ports, pids, stop } = await startRedis(masters)
  const connections = Array.from({ length: gateways }, () =>
    connectRedis(parseRedisUrl(url), pino({ enabled: false })),
  )
  await Promise.all(connections.map((connection) => connection.connected(5_000)))
  const limiters = connections.map(({ client }) => openLimiter(client))
  const operators = ports.map((port) => new Redis(port))
  const readInfo = async (section: string, figure: RegExp): Promise<number> => {
    const texts = await Promise.all(operators.map((operator) => operator.info(section)))
    return texts.reduce((sum, text) => sum + Number(figure.exec(text)?.[1] ?? 0), 0)
  }
  return {
    limiters,
    pids,
    readCpuUs: () => pids.reduce((sum, pid) => sum + readCpuUs(pid), 0),
    readInfo,
    version: /(?:valkey|redis)_version:\S+/.exec((await operators[0]?.info('server')) ?? '')?.[0] ?? '',
    async flush() {
      await Promise.all(operators.map((operator) => operator.flushall('SYNC')))
    },
    async close() {
      for (const limiter of limiters) limiter.close()
      for (const connection of connections) connection.close()
      for (const operator of operators) operator.disconnect()
      await stop()
    },
  }
}

function openLimiter(redis: ReturnType<typeof connectRedis>['client']): RedisLimiter {
  return countInRedis(redis, {
    failed(reason) {
      throw new Error(`Redis failed: ${reason}`)
    },
  })
}

/** Makes several rules with one algorithm. */
export function rulesOf(algorithm: MeasuredAlgorithm, rules: number, quota = 10_000): readonly Policy[] {
  return Array.from({ length: rules }, (_, rule) => ({
    name: `capacity-${rule}`,
    quota,
    windowMs: 600_000 * (rule + 1),
    algorithm,
    mode: 'enforce',
    onStoreError: 'closed',
    partition: [{ kind: 'ip' }],
  }))
}

/** The charges of a client's request. */
export function chargesOf(policies: readonly Policy[], client: number): Charge[] {
  const partitionKey = `10.${(client >> 16) & 255}.${(client >> 8) & 255}.${client & 255}`
  return policies.map((policy) => ({ policy, partitionKey }))
}
