import { Redis } from 'ioredis'
import type { Log } from '../../../../../shared/log.ts'
import { connectCluster } from './cluster.ts'
import { isOfReplica, isUnsent } from '../errors.ts'
import { createLeaving, isFirstToLeave, onReplica, type Leaving } from './leaving.ts'
import { readyWithoutInfo } from './ready-check.ts'
import {
  commonOptions,
  loginOptions,
  retryDelayMs,
  sentinelLoginOptions,
  type ReadCredentials,
} from './options.ts'
import { createProblemLog, type ProblemLog } from './problem-log.ts'
import { createRenewal, renewSentinelLogin } from './renewal.ts'
import type { RedisClient } from '../run-script.ts'
import { createSentinelReasons } from './sentinels.ts'
import { describeRedis, type RedisAddress } from './url.ts'

export type RedisConnection = {
  readonly client: RedisClient
  /**
   * Resolves when Redis can be asked, or after `timeoutMs`. Await this before serving the first request, which would
   * otherwise be counted locally only because it came too soon.
   */
  connected(timeoutMs: number): Promise<void>
  /** Ends the connection at once; commands in flight fail. */
  close(): void
}

/**
 * Connects to Redis, and keeps trying for as long as Redis is unavailable; nothing waits for it. Logs one line when the
 * connection is established, and one for each new reason why it is not. Each option that differs from the library's
 * default is explained here and in docs/redis.md.
 *
 * @param readCredentials called before each connection; by default, it returns the credentials of the address
 */
export function connectRedis(
  address: RedisAddress,
  log: Log,
  readCredentials: ReadCredentials = () => address,
): RedisConnection {
  const problems = createProblemLog(describeRedis(address), log)
  const leaving = createLeaving(() => performance.now())
  const client =
    address.topology === 'cluster'
      ? connectCluster(address, readCredentials, problems, leaving)
      : connectServer(address, readCredentials, problems, leaving)
  let isClosed = false
  let timer: NodeJS.Timeout | undefined
  let settling: NodeJS.Timeout | undefined
  client.on('ready', () => {
    leaving.connected()
    clearTimeout(settling)
    // A connection to a replica looks like one to a master until it is asked to count.
    if (leaving.isRecent()) settling = setTimeout(problems.solved, SETTLED_AFTER_MS).unref()
    else problems.solved()
  })
  client.on('close', () => clearTimeout(settling))
  onReplica(client, (reason) => {
    leaving.left()
    problems.logReplica(reason)
  })
  // The library's client ends permanently if Sentinel announces a new master while it is being asked for the old one.
  client.on('end', () => {
    if (isClosed) return
    timer = setTimeout(() => void client.connect().catch(() => undefined), retryDelayMs(1))
  })
  return {
    client,
    connected: (timeoutMs) => untilReady(client, timeoutMs),
    close() {
      isClosed = true
      clearTimeout(timer)
      clearTimeout(settling)
      client.disconnect()
    },
  }
}

function connectServer(
  address: RedisAddress,
  readCredentials: ReadCredentials,
  problems: Pick<ProblemLog, 'logProblem' | 'logReplica'>,
  leaving: Leaving,
): Redis {
  const sentinels = createSentinelReasons(() =>
    problems.logReplica('the server that Sentinel names as the master is a replica'),
  )
  // Read once, because a file with new credentials may be written at any time.
  const credentials = readCredentials()
  const server: Redis = new Redis({
    ...(address.topology === 'standalone'
      ? hostOptions(address)
      : {
          Connector: sentinels.Connector,
          ...sentinelOptions(address),
          sentinelReconnectStrategy: renewSentinelLogin(address, readCredentials),
          ...sentinelLoginOptions(address, credentials),
          sentinelRetryStrategy: (attempt: number) => {
            renew()
            return retryDelayMs(attempt)
          },
        }),
    ...commonOptions(),
    ...loginOptions(address, credentials),
    db: address.database,
    // Nothing is queued for a dead connection: a request would wait, and be counted long after it was answered.
    enableOfflineQueue: false,
    retryStrategy: (attempt) => {
      renew()
      return Math.max(retryDelayMs(attempt), leaving.delayMs())
    },
    // A master that became a replica refuses writes: connect again, to the new master. 2 would also send the command again.
    reconnectOnError(error: Error): 1 | false {
      const isDemoted = isOfReplica(error)
      if (!isDemoted && !renewal.isNeeded(server.options, error)) return false
      if (isDemoted) {
        leaving.left()
        problems.logReplica(error.message)
      }
      return isFirstToLeave(server) ? 1 : false
    },
  })
  const renewal = createRenewal(address, readCredentials)
  const renew = (): void => renewal.apply(server.options)
  readyWithoutInfo(server)
  leaveWithoutDatabase(server)
  sentinels.listen(server)
  server.on('error', (problem: Error) => {
    // The library goes on with its handshake after the connection was given up.
    if (isUnsent(problem)) return
    const explanation = sentinels.explain(problem)
    if (explanation) problems.logProblem(explainClosed(explanation, server.status))
  })
  server.on('end', renew)
  return server
}

/**
 * A server that accepts no more clients replies with an error and closes the connection. If the first command is written meanwhile, the
 * reply is lost, and only the closed connection shows.
 *
 * @param status the status of the client when its connection failed
 */
function explainClosed(problem: Error, status: string): Error {
  if (status !== 'connect' || !/^(?:read|write) (?:EPIPE|ECONNRESET)$/.test(problem.message)) return problem
  return new Error('closed before the first reply, as when maxclients is reached', { cause: problem })
}

/** If the server refuses to select the database, gives up the connection: the library would go on in database 0. */
function leaveWithoutDatabase(server: Redis): void {
  const select = server.select.bind(server) as (database: number) => Promise<unknown>
  const selectOrLeave = (database: number): Promise<unknown> =>
    select(database).catch((error: unknown) => {
      // Otherwise the connection is closed already.
      if (server.status === 'connect' && isFirstToLeave(server)) server.disconnect(true)
      throw error
    })
  Object.assign(server, { select: selectOrLeave })
}

function hostOptions({ hosts: [first] }: RedisAddress) {
  return { host: first?.host ?? '', port: first?.port ?? 0 }
}

/** Options of a connection to the master that the sentinels of the address name. */
function sentinelOptions(address: RedisAddress) {
  return {
    sentinels: [...address.hosts],
    name: address.masterName ?? '',
    // Follow a failover when the sentinels announce it, not only when the old master hangs up.
    failoverDetector: true,
    // Only the sentinel that named the master is listened to. Each of the others announces a failover in its own time,
    // up to seconds later, and each time a sound connection would be given up.
    sentinelMaxConnections: 1,
    sentinelCommandTimeout: 500,
    enableTLSForSentinelMode: address.tls,
  }
}

function untilReady(client: RedisClient, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer)
      clearInterval(look)
      resolve()
    }
    const timer = setTimeout(finish, timeoutMs)
    // A cluster has no event for this: its status is `ready` before its nodes are connected.
    const look = setInterval(() => {
      if (isReady(client)) finish()
    }, 5)
  })
}

function isReady(client: RedisClient): boolean {
  if (client.status !== 'ready') return false
  return client instanceof Redis || client.nodes('master').every(({ status }) => status === 'ready')
}

/** How long a connection must last, if an earlier one led to a replica, before it is logged as connected. */
const SETTLED_AFTER_MS = 1000
