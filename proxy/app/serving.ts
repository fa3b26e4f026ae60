import { randomInt, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { AddressInfo, ListenOptions, Server as NetServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import type { Log } from '../../shared/log.ts'
import type { Running } from '../../shared/shutdown.ts'
import { nameHostSetting } from '../../shared/start-error.ts'
import { collectYoungGarbage, returnMemory } from '../../shared/v8-gc.ts'
import { createClientOperations, type ClientOperations } from '../admin/client-operations.ts'
import { createHealth, type Health, type StoreState } from '../admin/health.ts'
import type { GatewaySettings } from '../config/settings.ts'
import { limitConnections } from '../connection/connection-limit.ts'
import { drain, endAfterResponses } from '../connection/drain.ts'
import { superviseSessions } from '../connection/http2-sessions.ts'
import { endIdleConnections } from '../connection/idle-timeout.ts'
import { serializeRequests } from '../connection/pipelining.ts'
import { readProxyHeader } from '../connection/proxy-protocol.ts'
import { watchSlowClients } from '../connection/slow-clients.ts'
import { createThrottledClients, type ThrottledClients } from '../decide/throttled-clients.ts'
import { createTunnels } from '../forward/tunnel.ts'
import { createRequestClassifier } from '../http/header-roles.ts'
import type { CounterAdmin } from '../limiter/counter-admin.ts'
import { createLimiter, type LimiterOptions } from '../limiter/create-limiter.ts'
import type { Limiter } from '../limiter/limiter.ts'
import type { RedisConnection } from '../limiter/redis/connection.ts'
import { parseRedisUrl } from '../limiter/redis/url.ts'
import type { Policy } from '../policy.ts'
import { createAddressReader } from '../request/client-address.ts'
import { compileRules } from '../rules/rule-table.ts'
import { createErrorBoundary } from '../server/error-boundary.ts'
import { createHandler } from '../server/handler.ts'
import { serveClients } from '../server/listener.ts'
import { createAccessLog } from '../telemetry/access-log.ts'
import { createFailureLog } from '../telemetry/failure-log.ts'
import { createMetrics, type Metrics } from '../telemetry/metrics.ts'
import { watchProcess } from '../telemetry/prometheus.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { createUnreadLog } from '../telemetry/unread-log.ts'
import { createUntrustedProxyWarning } from '../telemetry/untrusted-proxy-warning.ts'
import { connectionOpener } from '../upstream/open-connection.ts'
import { UpstreamPool } from '../upstream/pool.ts'
import { trimHeapAfterBursts } from './heap-trim.ts'
import { scheduleMinorGcs } from './minor-gc.ts'
import { createClientServer } from './server.ts'
import { version } from './version.ts'

/** The ports that a gateway listens on. */
export type Listening = { readonly port: number; readonly adminPort: number }

export type Gateway = Running & {
  /** Resolves with undefined where the gateway is closed before it listens. */
  listen(): Promise<Listening | undefined>
}

/** Everything that serves clients in one process: the whole gateway except the admin listener. */
export type Serving = Running & {
  readonly metrics: Metrics
  readonly health: Health
  readonly clients: ClientOperations
  /** Opens the clients' port. Resolves with undefined if it was closed before; rejects if the port cannot be opened. */
  listen(options?: ListenOptions): Promise<AddressInfo | undefined>
}

/** A limiter, the state of its store, and how to close both. */
export type Counting = Running & {
  readonly limiter: Limiter
  readonly storeState: () => StoreState
  /** For an operator. Where another process counts, it is asked there. */
  readonly operations: Pick<CounterAdmin, 'inspect' | 'reset'>
  /** Resolves when the store is connected, or after a short wait. */
  ready(): Promise<void>
}

/** How long a start waits for Redis, so that the first requests are counted there; then it serves without. */
const connectAtStartMs = 1_000

/** About what a connection holds that is open. */
const bytesAConnection = 16 * 1024

/** Clients over a limit that operators can list: two megabytes at most. */
const THROTTLED_CLIENTS = 10_000

const now = (): number => performance.now()

/**
 * @param countElsewhere makes the counters where they are neither in Redis nor in this process: with several workers
 *   and no Redis the primary process counts for all of them
 */
export async function composeServing(
  settings: GatewaySettings,
  log: Log,
  countElsewhere?: (telemetry: Telemetry, forgotten: ThrottledClients['forget']) => Counting,
): Promise<Serving> {
  const rules = settings.rateLimitingDisabled ? [] : settings.rules
  const policies = rules.map(({ policy }) => policy)
  const metrics = createMetrics({
    policies,
    limitsEnabled: !settings.rateLimitingDisabled,
    version,
    readNode: watchProcess('sluice_'),
  })
  const { telemetry } = metrics
  const throttledClients = createThrottledClients(THROTTLED_CLIENTS, now)
  telemetry.observeTable('limited', () => throttledClients.readUse())
  const forgotten: ThrottledClients['forget'] = (policyName, partitionKey) =>
    throttledClients.forget(policyName, partitionKey)
  const counters =
    countElsewhere?.(telemetry, forgotten) ?? (await composeCounting(settings, log, telemetry, forgotten))
  const health = createHealth({
    storeState: () => counters.storeState(),
    upstreamState: () => metrics.upstreamState(),
  })
  const pool = composePool(settings, telemetry)
  const { server, certificate } = createClientServer(settings, log)
  const addresses = createAddressReader(settings.trustedProxies, settings.ipv6Prefix)
  const connectionLimit = limitConnections(server, {
    maxConnections: settings.maxConnections,
    maxConnectionsPerClient: settings.maxConnectionsPerClient,
    addresses,
    readNamedAddress: settings.proxyProtocol
      ? (socket) => readProxyHeader(socket, settings.headersTimeoutMs)
      : undefined,
    telemetry,
    log,
    logAddresses: settings.logAddresses,
    now,
  })
  const sessions = superviseSessions(
    server,
    {
      idleMs: settings.idleTimeoutMs,
      firstRequestMs: settings.headersTimeoutMs,
      maxRequests: settings.requestsPerConnection,
      sendMs: settings.sendTimeoutMs,
    },
    now,
  )
  endIdleConnections(
    connectionLimit.connections,
    { idleMs: settings.idleTimeoutMs, headersMs: settings.headersTimeoutMs },
    now,
  )
  const slowClients = watchSlowClients(settings, now, createUnreadLog(log, settings))
  telemetry.observeTable('unread-bytes', () => slowClients.readUnread())
  const stopReturningMemory = trimHeapAfterBursts(
    () => connectionLimit.size * bytesAConnection + slowClients.readUnread().size,
    returnMemory,
  )
  const stopDividing = scheduleMinorGcs(() => connectionLimit.accepted, collectYoungGarbage)
  const tunnels = createTunnels({
    idleMs: settings.tunnelIdleTimeoutMs,
    onOpen: () => telemetry.upgradeOpened(),
    onClose: () => telemetry.upgradeClosed(),
  })
  const onException = createErrorBoundary(telemetry, log)
  const handler = createHandler({
    rules: compileRules(rules),
    limiter: counters.limiter,
    throttledClients,
    addresses,
    addressOf: (socket) => connectionLimit.addressOf(socket),
    slowClients,
    maxTargetBytes: settings.maxTargetBytes,
    maxHeaderCount: settings.maxHeaderCount,
    forwarder: {
      pool,
      telemetry,
      maxBodyBytes: settings.maxBodyBytes,
      readAhead: {
        perResponseBytes: settings.responseBufferBytes,
        totalBytes: settings.maxUnreadBytes / 2,
        heldBytes: 0,
      },
      now,
      onFailure: createFailureLog(log),
    },
    telemetry,
    onException,
    upstreamPrefix: settings.upstreamUrl.pathname.replace(/\/$/, ''),
    upstreamHost: settings.upstreamUrl.host,
    classifyField: createRequestClassifier(policies.flatMap(headersOf), settings.keepUnusualHeaders),
    scheme: settings.tlsCertFile === undefined ? 'http' : 'https',
    makeRequestId: randomUUID,
    now,
    isStopping: () => health.read().status === 'stopping',
    onUntrustedProxy: createUntrustedProxyWarning(log, settings),
    onRejected: (requestId, status, reason) => log.debug({ requestId, status, reason }, 'request rejected'),
    onFinished: settings.accessLog ? createAccessLog(log, settings) : undefined,
  })
  const serveInTurn = serializeRequests(settings.requestsPerConnection)
  serveClients(server, {
    handler,
    serveInTurn,
    tunnels,
    telemetry,
    onException,
    onParserError: ({ reply: { status }, why }) => log.debug({ status, reason: why }, 'request rejected'),
  })
  const reload = (): void => void certificate?.reload()
  if (certificate) process.on('SIGHUP', reload)

  return {
    metrics,
    health,
    clients: createClientOperations({
      counters: counters.operations,
      limited: throttledClients,
      onReset: () => telemetry.clientReset(),
      log,
    }),
    async listen(options = {}) {
      const { host, port } = settings
      await counters.ready()
      if (health.read().status === 'stopping') return undefined
      const where = { port, ...(host !== undefined && { host }), ...options }
      const address = await listenOn(server, where, 'HOST')
      health.markReady()
      return address
    },
    async close() {
      health.beginStopping()
      endAfterResponses(server, connectionLimit)
      if (settings.shutdownDelayMs > 0) await setTimeout(settings.shutdownDelayMs)
      tunnels.closeAll()
      await drain(server, { connectionLimit, sessions, log }, settings.shutdownGraceMs)
      process.off('SIGHUP', reload)
      certificate?.close()
      slowClients.close()
      stopReturningMemory()
      stopDividing()
      pool.destroy()
      await counters.close()
    },
  }
}

/** Counters in Redis, or in this process where none is set. */
async function composeCounting(
  settings: GatewaySettings,
  log: Log,
  telemetry: Telemetry,
  forgotten: ThrottledClients['forget'],
): Promise<Counting> {
  const redis = await composeRedis(settings, log)
  const limiter = createLimiter({
    redis: redis?.client,
    ...counterOptions(settings, log, telemetry, forgotten),
  })
  return {
    limiter,
    operations: limiter,
    storeState: () => limiter.storeState(),
    ready: async () => redis?.connected(connectAtStartMs),
    close() {
      limiter.close()
      redis?.close()
      return Promise.resolve()
    },
  }
}

async function composeRedis(settings: GatewaySettings, log: Log): Promise<RedisConnection | undefined> {
  const { redisUrl, redisCaFile, redisCertFile, redisKeyFile } = settings
  if (redisUrl === undefined) return undefined
  // The Redis client consists of a hundred modules; a gateway without Redis does not load them.
  const { connectRedis } = await import('../limiter/redis/connection.ts')
  return connectRedis(parseRedisUrl(redisUrl), log, {
    ca: redisCaFile === undefined ? undefined : readFileSync(redisCaFile),
    cert: redisCertFile === undefined ? undefined : readFileSync(redisCertFile),
    key: redisKeyFile === undefined ? undefined : readFileSync(redisKeyFile),
    sentinelUsername: settings.redisSentinelUsername,
    sentinelPassword: settings.redisSentinelPassword,
  })
}

/** The fields that tell a policy's clients apart. */
function headersOf({ partition }: Policy): string[] {
  return partition.flatMap((part) => (part.kind === 'header' ? [part.name] : []))
}

/** The options that all kinds of limiters have in common. */
export function counterOptions(
  settings: GatewaySettings,
  log: Log,
  telemetry: Telemetry,
  forgotten: ThrottledClients['forget'],
): LimiterOptions {
  const { storeTimeoutMs, namespace, storeMaxKeys } = settings
  return { storeTimeoutMs, namespace, storeMaxKeys, seed: randomInt(2 ** 31), now, log, telemetry, forgotten }
}

function composePool(settings: GatewaySettings, telemetry: Telemetry): UpstreamPool {
  const { upstreamUrl, upstreamCaFile, upstreamConnections, upstreamQueue } = settings
  const authorities = upstreamCaFile === undefined ? undefined : readFileSync(upstreamCaFile)
  const pool = new UpstreamPool({
    open: connectionOpener(upstreamUrl, authorities),
    connectMs: settings.upstreamConnectTimeoutMs,
    firstByteMs: settings.upstreamTimeoutMs,
    idleMs: settings.upstreamIdleTimeoutMs,
    bareLf: settings.upstreamBareLf,
    maxConnections: upstreamConnections,
    maxStreams: settings.upstreamStreams,
    maxQueued: upstreamQueue,
    queueMs: settings.upstreamQueueTimeoutMs,
    maxAgeMs: settings.upstreamMaxAgeMs,
    maxRequests: settings.upstreamMaxRequests,
    now,
    random: Math.random,
  })
  const observe = (name: string, capacity: number, size: () => number): void =>
    telemetry.observeTable(name, () => ({ size: size(), capacity, evictions: 0 }))
  observe('upstream-connections', upstreamConnections, () => pool.size)
  observe('upstream-streams', settings.upstreamStreams, () => pool.streams)
  observe('upstream-queue', upstreamQueue, () => pool.queued)
  observe('upload-queue', upstreamQueue, () => pool.queuedUploads)
  return pool
}

/**
 * Rejects where the address cannot be had: with the system's error, or one that names the setting where it is the host.
 *
 * @param hostSetting the variable that sets the host
 */
export function listenOn(
  server: NetServer,
  options: ListenOptions,
  hostSetting: string,
): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => reject(nameHostSetting(error, hostSetting, options.host))
    server.once('error', fail)
    server.listen(options, () => {
      server.off('error', fail)
      resolve(server.address() as AddressInfo)
    })
  })
}
