import { Cluster, Redis } from 'ioredis'
import type { Log } from '../../shared/log.ts'
import type { RedisClient } from './redis-scripts.ts'
import { describeRedis, type RedisAddress } from './redis-url.ts'

/** What is needed for a connection beside the address: all of it PEM, or from an operator. */
export type RedisCredentials = {
  /** Those to trust instead of the usual authorities. */
  readonly ca?: Buffer | undefined
  /** What Redis and Sentinel are shown where they ask for a certificate. */
  readonly cert?: Buffer | undefined
  readonly key?: Buffer | undefined
  /** The login at the sentinels; at Redis it is the address's. */
  readonly sentinelUsername?: string | undefined
  readonly sentinelPassword?: string | undefined
}

export type RedisConnection = {
  readonly client: RedisClient
  /**
   * Resolves when Redis can be asked, or after `timeoutMs` without that: to be awaited before the first request is
   * served, which would else be counted locally only because it came too soon.
   */
  connected(timeoutMs: number): Promise<void>
  /** Ends the connection at once; what is in flight fails. */
  close(): void
}

/**
 * Connects to Redis and keeps connecting for as long as it is away; nothing waits for it. The log gets one line when
 * the connection is there and one for each new reason why it is not. Each option that differs from the library's
 * default is explained here and in docs/redis.md.
 */
export function connectRedis(
  address: RedisAddress,
  log: Log,
  credentials: RedisCredentials = {},
): RedisConnection {
  const problems = createProblemLog(describeRedis(address), log)
  const client =
    address.topology === 'cluster'
      ? connectCluster(address, credentials, problems.tell)
      : connectServer(address, credentials)
  client.on('error', problems.tell)
  client.on('ready', problems.solved)
  return {
    client,
    connected: (timeoutMs) => untilReady(client, timeoutMs),
    close: () => client.disconnect(),
  }
}

/** Milliseconds before the next attempt to connect. For ever: a number ends nothing. */
function retryDelayMs(attempt: number): number {
  return Math.min(50 * 2 ** Math.min(attempt - 1, 10), 1000)
}

/** Node verifies certificate and name unless it is told not to. */
function tlsOptions({ ca, cert, key }: RedisCredentials) {
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) }
}

function commonOptions({ tls, username, password }: RedisAddress, credentials: RedisCredentials) {
  return {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls ? { tls: tlsOptions(credentials) } : {}),
    // A command that was sent may have been executed. Sent again after a reconnect, it would count twice.
    autoResendUnfulfilledCommands: false,
    // What is in flight when a connection is lost fails at once, instead of after 20 attempts to reconnect.
    maxRetriesPerRequest: 0,
    // A connection with answers overdue for so long is dead, whatever TCP thinks of it. It also bounds what waits on
    // a server that hangs: only probes are sent there, and none of them is older than this.
    socketTimeout: 2000,
    connectTimeout: 2000,
    // Finds out about a peer that vanished without a word while nothing is sent.
    keepAlive: 10_000,
    // How long to wait before asking again whether a server has loaded its data.
    maxLoadingRetryTime: 500,
    // A master that became a replica refuses writes: look for the new one. 1, not 2, which would send again.
    reconnectOnError: (error: Error) => (error.message.startsWith('READONLY') ? 1 : false),
    // Nothing of RESP3 is used here, and older servers and proxies in between know RESP2.
    protocol: 2 as const,
    // Shown by CLIENT LIST. The library's own introduction costs two commands that older servers reject.
    connectionName: 'sluice',
    disableClientInfo: true,
  }
}

function connectServer(address: RedisAddress, credentials: RedisCredentials): Redis {
  const [first] = address.hosts
  const { sentinelUsername, sentinelPassword } = credentials
  const place =
    address.topology === 'standalone'
      ? { host: first?.host ?? '', port: first?.port ?? 0 }
      : {
          sentinels: [...address.hosts],
          name: address.masterName ?? '',
          // Follow a failover when the sentinels announce it, not only when the old master hangs up.
          failoverDetector: true,
          sentinelCommandTimeout: 1000,
          sentinelRetryStrategy: retryDelayMs,
          sentinelReconnectStrategy: retryDelayMs,
          ...(sentinelUsername === undefined ? {} : { sentinelUsername }),
          ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
          enableTLSForSentinelMode: address.tls,
          ...(address.tls ? { sentinelTLS: tlsOptions(credentials) } : {}),
        }
  return new Redis({
    ...place,
    ...commonOptions(address, credentials),
    db: address.database,
    // Nothing queues behind a dead connection: a request would wait, and be counted long after its answer.
    enableOfflineQueue: false,
    retryStrategy: retryDelayMs,
  })
}

function connectCluster(
  address: RedisAddress,
  credentials: RedisCredentials,
  tellProblem: (problem: Error) => void,
): Cluster {
  const cluster = new Cluster([...address.hosts], {
    redisOptions: commonOptions(address, credentials),
    enableOfflineQueue: false,
    // Names stay names until a connection is opened: each time they may lead elsewhere, and certificates are for them.
    dnsLookup: (host, found) => found(null, host),
    clusterRetryStrategy: (attempt, reason) => {
      // The reason of a failed attempt is not always an event too.
      if (reason) tellProblem(reason)
      return retryDelayMs(attempt)
    },
    clusterNodeRetryStrategy: retryDelayMs,
    // A redirected command has not been executed and may follow, but not for long: the default is 16 times.
    maxRedirections: 3,
    retryDelayOnTryAgain: 20,
    // 0 is never: the command may have been executed before its connection was lost.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    slotsRefreshTimeout: 1000,
  })
  // The library connects to a node when the first command is sent there, and fails the commands after it until then.
  cluster.on('+node', (node: Redis) => {
    if (node.status === 'wait' && !node.options.readOnly) node.connect().catch(() => undefined)
  })
  return cluster
}

function untilReady(client: RedisClient, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer)
      clearInterval(look)
      resolve()
    }
    const timer = setTimeout(finish, timeoutMs)
    // A cluster has no event for it: it calls itself ready before its nodes are connected.
    const look = setInterval(() => {
      if (isReady(client)) finish()
    }, 5)
  })
}

function isReady(client: RedisClient): boolean {
  if (client.status !== 'ready') return false
  return client instanceof Redis || client.nodes('master').every(({ status }) => status === 'ready')
}

type ProblemLog = { readonly tell: (problem: Error) => void; readonly solved: () => void }

/** One line for each new reason why there is no connection, and one when there is. */
function createProblemLog(redis: string, log: Log): ProblemLog {
  const told = new Set<string>()
  return {
    tell(problem) {
      const reason = reasonOf(problem)
      if (told.has(reason) || told.size === MAX_REASONS) return
      told.add(reason)
      log.warn({ redis, reason }, 'cannot connect to Redis, trying on')
    },
    solved() {
      told.clear()
      log.info({ redis }, 'connected to Redis')
    },
  }
}

/** More in one outage than there are kinds of failures: then the reasons hold something that changes each time. */
const MAX_REASONS = 20

function reasonOf(problem: Error & { readonly lastNodeError?: Error }): string {
  // A cluster says that no node could be asked, and keeps why in a property; Sentinel tells when it tries next.
  const reason = problem.lastNodeError
    ? `${problem.message} ${problem.lastNodeError.message}`
    : problem.message
  return reason.replace(/ Retrying from scratch after \d+ms\./, '')
}
