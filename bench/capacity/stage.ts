import { Redis } from 'ioredis'
import { readFileSync } from 'node:fs'
import { pino } from 'pino'
import type { Charge } from '../../proxy/limits/limiter.ts'
import { connectRedis } from '../../proxy/limits/store/redis/connecting/connection.ts'
import { parseRedisUrl } from '../../proxy/limits/store/redis/connecting/url.ts'
import { createRedisLimiter, type RedisLimiter } from '../../proxy/limits/store/redis/limiter.ts'
import type { Policy } from '../../proxy/policy.ts'
import { freePort } from '../../test/support/network/ports.ts'
import { startRedisCluster } from '../../test/support/redis/redis-cluster.ts'
import { startServer } from '../measure/processes.ts'
import type { MeasuredAlgorithm } from './costs.ts'

/** Redis servers on this machine, with the limiters of several gateways. */
export type Stage = {
  readonly limiters: readonly RedisLimiter[]
  readonly pids: readonly number[]
  /** Microseconds that the servers have been on a core since they started. */
  readCpuUs(): number
  /** The sum over the servers of a figure of `INFO`. */
  readInfo(section: string, figure: RegExp): Promise<number>
  readonly version: string
  flush(): Promise<void>
  close(): Promise<void>
}

/** @param masters of a cluster; 0 is a single server */
export async function openStage(masters: number, gateways: number): Promise<Stage> {
  const { url, ports, pids, stop } = await startServers(masters)
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

async function startServers(masters: number): Promise<{
  readonly url: string
  readonly ports: readonly number[]
  readonly pids: readonly number[]
  readonly stop: () => unknown
}> {
  if (masters > 0) {
    const cluster = await startRedisCluster(masters, 0)
    const { url, nodes } = cluster
    return {
      url,
      ports: nodes.map(({ port }) => port),
      pids: nodes.map(({ pid }) => pid),
      stop: () => cluster.close(),
    }
  }
  const port = await freePort()
  const args = ['--port', String(port), '--save', '', '--bind', '127.0.0.1']
  const server = await startServer({ program: 'redis-server', args }, port)
  return { url: `redis://127.0.0.1:${port}`, ports: [port], pids: [server.pid], stop: () => server.stop() }
}

function openLimiter(redis: ReturnType<typeof connectRedis>['client']): RedisLimiter {
  return createRedisLimiter({
    redis,
    keyPrefix: 'sluice:1',
    timeoutMs: 5_000,
    now: () => performance.now(),
    hooks: {
      answered: () => undefined,
      failed(reason) {
        throw new Error(`Redis failed: ${reason}`)
      },
      counterBroken: () => undefined,
      decideWithout: () => ({ outcome: 'unavailable', uncertain: true }),
      refused: () => undefined,
    },
  })
}

/** proc_pid_schedstat(5), which counts in nanoseconds. */
function readCpuUs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1000
}

/** So many rules of an algorithm. */
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

/** The charges of a request of a client. */
export function chargesOf(policies: readonly Policy[], client: number): Charge[] {
  const partitionKey = `10.${(client >> 16) & 255}.${(client >> 8) & 255}.${client & 255}`
  return policies.map((policy) => ({ policy, partitionKey }))
}
