import { readFileSync } from 'node:fs'
import { freePort } from '../../test/support/network/ports.ts'
import { startRedisCluster } from '../../test/support/redis/redis-cluster.ts'
import { endFile } from '../../test/support/run/at-end.ts'
import { startServer } from './processes.ts'

export type RedisServers = {
  readonly url: string
  readonly ports: readonly number[]
  readonly pids: readonly number[]
  readonly stop: () => unknown
}

/** @param masters the number of masters of a cluster; 0 for a single server */
export async function startRedis(masters: number): Promise<RedisServers> {
  if (masters > 0) {
    const { url, nodes } = await startRedisCluster(masters, 0)
    return { url, ports: nodes.map(({ port }) => port), pids: nodes.map(({ pid }) => pid), stop: endFile }
  }
  const port = await freePort()
  const args = ['--port', String(port), '--save', '', '--bind', '127.0.0.1']
  const server = await startServer({ program: 'redis-server', args }, port)
  return { url: `redis://127.0.0.1:${port}`, ports: [port], pids: [server.pid], stop: () => server.stop() }
}

/** Microseconds of CPU that a process has used since it started: proc_pid_schedstat(5), which counts in nanoseconds. */
export function readCpuUs(pid: number | 'self'): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1000
}
