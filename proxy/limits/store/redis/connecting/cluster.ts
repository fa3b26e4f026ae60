import { Cluster, type Redis, type RedisOptions } from 'ioredis'
import { isOfReplica, isUnsent } from '../errors.ts'
import type { Leaving } from './leaving.ts'
import { readyWithoutInfo } from './ready-check.ts'
import { commonOptions, loginOptions, retryDelayMs, type ReadCredentials } from './options.ts'
import { withHost } from './redirections.ts'
import { createRenewal } from './renewal.ts'
import type { RedisAddress } from './url.ts'

/** Callbacks of a cluster for nodes, `host:port`, that cannot be reached. */
export type ClusterProblems = {
  readonly logProblem: (problem: Error, node?: string) => void
  /** Called when the node is connected again. */
  readonly solvedAt: (node: string) => void
}

const RELEARN_EVERY_MS = 300

/** How long a new connection to a cluster waits for nodes that are slower than the first. A node that drops packets takes a second. */
const OTHERS_WITHIN_MS = 100

/**
 * Connects to all nodes of a cluster, including replicas, so that a replica that takes over is asked at once.
 *
 * A node whose connection is lost is dropped, not reconnected to: its slots may have moved, and only other nodes know where. The
 * next command for one of its slots asks them. Without such a command, they are asked a moment later, which also finds a node
 * that has merely restarted. When the last node is dropped, the hosts of the address are resolved again.
 */
export function connectCluster(
  address: RedisAddress,
  readCredentials: ReadCredentials,
  problems: ClusterProblems,
  leaving: Leaving,
): Cluster {
  const renewal = createRenewal(address, readCredentials)
  const cluster = new Cluster([...address.hosts], {
    redisOptions: {
      ...commonOptions(),
      ...loginOptions(address, readCredentials()),
      // If a master became a replica, drop its connection, and ask the other nodes which node serves its slots.
      reconnectOnError(this: RedisOptions, error: Error): 1 | false {
        error.message = withHost(error.message, this.host)
        return isOfReplica(error) || renewal.isNeeded(this, error) ? 1 : false
      },
    },
    enableOfflineQueue: false,
    // Names are resolved only when a connection is opened: they may lead elsewhere each time, and certificates are issued for names.
    dnsLookup: (host, found) => found(null, host),
    clusterRetryStrategy: (attempt, reason) => {
      // The reason for a failed attempt is not always emitted as an event.
      if (reason) problems.logProblem(reason)
      return Math.max(retryDelayMs(attempt), leaving.delayMs())
    },
    // A redirected command has not been executed and may be redirected again, but not often: the default is 16 times.
    maxRedirections: 3,
    // TRYAGAIN: a command had several keys of a moving slot. askAcrossSlots then asks about one key at a time.
    retryDelayOnTryAgain: 1,
    // 0 means never: the command may have been executed before its connection was lost.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    // Nodes are asked one after another, and the first node may hang without having been noticed.
    slotsRefreshTimeout: 500,
  })
  // `error` says that no node could be asked, and `node error` says why.
  cluster.on('error', () => undefined)
  cluster.on('node error', (error: Error, node: string) => {
    if (error.message !== 'Connection is closed.' && !isUnsent(error)) problems.logProblem(error, node)
  })
  // The library connects to a node only when the first command is sent there, and fails further commands until it is connected.
  cluster.on('+node', (node: Redis) => {
    readyWithoutInfo(node)
    // The node was made with the options of the start, and is not connected yet.
    renewal.apply(node.options)
    renewal.applyToDuplicates(node)
    skipUnlessReady(node, () => cluster.nodes().some(({ status }) => status === 'ready'))
    node.once('ready', () => problems.solvedAt(`${node.options.host}:${node.options.port}`))
    if (node.status === 'wait') node.connect().catch(() => undefined)
  })
  readyOnceConnected(cluster)
  relearnSlots(cluster)
  return cluster
}

/** A private method of the library. */
type ReadyCheck = { readyCheck(callback: (error: null) => void): void }

/**
 * Makes the cluster ready when its nodes are connected or dropped, or a moment after the first is connected. The library would send CLUSTER
 * INFO as soon as it knows the slots. Of the nodes that the reply announces, only those are connected then that have the same host and port
 * in `REDIS_URL`. Others cannot be asked yet, and the library would start again. A node that does not serve requests says so in reply to
 * the first one.
 *
 * If no node can be connected to, the library asks the hosts of the address again.
 */
function readyOnceConnected(cluster: Cluster): void {
  const isReady = ({ status }: Redis): boolean => status === 'ready'
  const readyCheck: ReadyCheck['readyCheck'] = (callback) => {
    let timer: NodeJS.Timeout | undefined
    const finish = (): void => {
      clearTimeout(timer)
      if (cluster.status === 'connect' && cluster.nodes().some(isReady)) callback(null)
    }
    const look = (): void => {
      if (cluster.nodes().every(isReady)) finish()
      else if (cluster.nodes().some(isReady)) timer ??= setTimeout(finish, OTHERS_WITHIN_MS).unref()
    }
    // Until the cluster is ready, it gets no further nodes. A node whose connection has ended is no longer among them.
    for (const node of cluster.nodes()) node.once('ready', look).once('end', look)
    look()
  }
  Object.assign(cluster, { readyCheck })
}

/** Asks the other nodes which node serves the slots of a node that was dropped, until every master is connected. */
function relearnSlots(cluster: Cluster): void {
  let timer: NodeJS.Timeout | undefined
  const relearnSoon = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined
      if (cluster.status !== 'ready') return
      // A node that hangs is dropped, and then added again by the answer of nodes that have not noticed. So check after the answer.
      cluster.refreshSlotsCache(() => {
        if (cluster.nodes('master').some(({ status }) => status !== 'ready')) relearnSoon()
      })
    }, RELEARN_EVERY_MS).unref()
  }
  cluster.on('-node', relearnSoon)
}

/**
 * The library asks the nodes for the slots in random order, each over a new connection. A node that hangs would take up
 * `slotsRefreshTimeout` each time. Therefore, a node that is not connected is asked only if no other node is connected.
 */
function skipUnlessReady(node: Redis, isOtherReady: () => boolean): void {
  const duplicate = node.duplicate.bind(node)
  node.duplicate = (options) => {
    const connection = duplicate(options)
    if (node.status !== 'ready' && isOtherReady()) connection.options.enableOfflineQueue = false
    fillHosts(connection)
    return connection
  }
}

type Asked = (error: Error | null | undefined, reply: unknown) => void

/**
 * Fills in hosts in the reply to CLUSTER SLOTS: an empty or missing host means the host that was asked. A node that no other node has met
 * does not know its address, and with `cluster-preferred-endpoint-type unknown-endpoint`, nodes do not report theirs. The library leaves
 * such nodes out.
 *
 * @param connection a connection on which the library calls `cluster` with a callback
 */
function fillHosts(connection: Redis): void {
  const ask = connection.cluster.bind(connection) as (subcommand: string, callback: Asked) => unknown
  const askWithHosts: typeof ask = (subcommand, callback) =>
    ask(subcommand, (error, reply) => {
      for (const [, , ...nodes] of (error ? [] : reply) as readonly unknown[][])
        for (const node of nodes as unknown[][]) node[0] ||= connection.options.host
      callback(error, reply)
    })
  Object.assign(connection, { cluster: askWithHosts })
}
