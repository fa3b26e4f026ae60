import { Redis } from 'ioredis'
import { freePort } from '../network/ports.ts'
import type { RedisServer } from './redis-server.ts'
import { isSince } from './redis-version.ts'
import { startRedisServer } from './redis.ts'
import { atEndOfFile } from '../run/at-end.ts'
import { untilMatches } from '../wait/until-matches.ts'

export type ClusterNode = RedisServer & {
  readonly busPort: number
  /** The node's id in the cluster. */
  readonly id: string
  /** A connection for an operator's commands. It reconnects; a command fails while the node is unreachable. */
  readonly operator: Redis
}

export type RedisCluster = {
  readonly url: string
  /** The initial masters, then their replicas in the same order. */
  readonly nodes: readonly ClusterNode[]
  /** Resolves once every reachable node reports that all slots are served. */
  untilSound(): Promise<void>
  close(): void
}

const SLOTS = 16_384

/**
 * How long a node must be silent before the cluster considers it down. Longer without replicas, as no node could take its place, and a busy
 * machine must not look like an outage.
 */
const NODE_TIMEOUT_MS = { withReplicas: 2000, without: 15_000 }

/**
 * Starts a cluster and waits until it serves requests. Its nodes end after the file's last test.
 *
 * @param replicas the number of replicas of each master
 * @param firstPort where the first node listens; any free port unless given
 */
export async function startRedisCluster(
  masters: number,
  replicas: number,
  firstPort?: number,
): Promise<RedisCluster> {
  const count = masters * (1 + replicas)
  const nodeTimeoutMs = replicas > 0 ? NODE_TIMEOUT_MS.withReplicas : NODE_TIMEOUT_MS.without
  const nodes = await Promise.all(
    Array.from({ length: count }, (_, i) => startNode(nodeTimeoutMs, i === 0 ? firstPort : undefined)),
  )
  const [first] = nodes
  for (const [i, { operator }] of nodes.entries()) {
    await operator.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1)
    if (i >= masters) continue
    const from = Math.ceil((SLOTS * i) / masters)
    const to = Math.ceil((SLOTS * (i + 1)) / masters)
    // Redis 6 does not accept a range of slots.
    await operator.cluster('ADDSLOTS', ...Array.from({ length: to - from }, (_, index) => from + index))
  }
  for (const { port, busPort } of nodes.slice(1)) {
    await first?.operator.call('CLUSTER', 'MEET', '127.0.0.1', port, busPort)
  }
  const untilEach = async (has: RegExp): Promise<void> => {
    for (const { operator } of nodes.filter(({ operator }) => operator.status === 'ready'))
      await untilMatches(() => operator.cluster('INFO'), has)
  }
  await untilEach(new RegExp(`cluster_known_nodes:${count}\\b`))
  for (const [i, { operator }] of nodes.entries()) {
    if (i >= masters) await operator.call('CLUSTER', 'REPLICATE', nodes[i % masters]?.id ?? '')
  }
  const untilSound = async (): Promise<void> => {
    await untilEach(/cluster_state:ok[^]*cluster_slots_ok:16384[^]*cluster_slots_pfail:0/)
  }
  await untilSound()
  for (const { operator } of nodes.slice(masters)) {
    await untilMatches(() => operator.info('replication'), /master_link_status:up/)
  }
  return {
    url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join()}`,
    nodes,
    untilSound,
    close: () => nodes.forEach(({ operator }) => operator.disconnect()),
  }
}

const operators = new Set<Redis>()

// Otherwise they keep reconnecting for as long as the process lives.
atEndOfFile(() => {
  for (const operator of operators) operator.disconnect()
  operators.clear()
})

async function startNode(nodeTimeoutMs: number, givenPort: number | undefined): Promise<ClusterNode> {
  const port = givenPort ?? (await freePort())
  // The default, 10000 above the client port, is in the ephemeral range of outgoing connections.
  const busPort = isSince(7.0) ? await freePort() : port + 10_000
  const cluster = ['--cluster-enabled', 'yes', '--databases', '1']
  const bus = isSince(7.0) ? ['--cluster-port', String(busPort)] : []
  const timeouts = ['--cluster-node-timeout', String(nodeTimeoutMs), '--repl-diskless-sync-delay', '0']
  const server = await startRedisServer({ args: [...cluster, ...bus, ...timeouts], port })
  const operator = new Redis(server.port, { maxRetriesPerRequest: 0, enableOfflineQueue: true })
  operators.add(operator)
  operator.on('error', () => undefined)
  return { ...server, busPort, operator, id: await operator.cluster('MYID') }
}
