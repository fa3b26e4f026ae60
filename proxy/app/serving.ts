import type { AddressInfo, ListenOptions, Server as NetServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import type { Log } from '../../shared/log.ts'
import type { Running } from '../../shared/shutdown.ts'
import { createClientOperations, type ClientOperations } from '../admin/client-operations.ts'
import { createHealth, type Health } from '../admin/health.ts'
import type { GatewaySettings } from '../config/settings.ts'
import { drain, endAfterResponses } from '../connection/drain.ts'
import { serializeRequests } from '../connection/pipelining.ts'
import { createThrottledClients, type ThrottledClients } from '../decide/throttled-clients.ts'
import { createTunnels } from '../forward/tunnel.ts'
import { createAddressReader } from '../request/client-address.ts'
import { createErrorBoundary } from '../server/error-boundary.ts'
import { serveClients } from '../server/listener.ts'
import { createMetrics, type Metrics } from '../telemetry/metrics.ts'
import { watchProcess } from '../telemetry/prometheus.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { createTokens } from '../tokens/tokens.ts'
import { composeConnections } from './connections.ts'
import { composeCounting, type Counting } from './counting.ts'
import { composeHandler, type HandlerDeps } from './request-handler.ts'
import { createClientServer, listenOn } from './server.ts'
import { composeTrustedProxies } from './trusted-proxies.ts'
import { composePool } from './upstream.ts'
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

/** How long a start waits for the addresses of trusted proxies, so that their first requests are believed. */
const LOOKUP_AT_START_MS = 2_000

/** Time that the start waits for the key set, so that the first requests count as they should. */
const KEYS_AT_START_MS = 1_000

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
  const metrics = createMetrics({
    policies: rules.map(({ policy }) => policy),
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
  const isStopping = (): boolean => health.read().status === 'stopping'
  const { limiter } = counters
  const tokens = await createTokens(
    settings.jwt,
    rules.map(({ policy }) => policy),
    { telemetry, log, now, wallNow: Date.now },
  )
  const clients = composeServer(settings, {
    rules,
    limiter,
    tokens: tokens?.reader,
    throttledClients,
    telemetry,
    isStopping,
    log,
  })

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
      await Promise.all([counters.ready(), clients.ready(), tokens?.ready(KEYS_AT_START_MS)])
      if (isStopping()) return undefined
      const where = { port, ...(host !== undefined && { host }), ...options }
      const address = await listenOn(clients.server, where, 'HOST')
      health.markReady()
      return address
    },
    async close() {
      health.beginStopping()
      await clients.close()
      tokens?.close()
      await counters.close()
    },
  }
}

/** The server that clients connect to, and how it is closed: gracefully, then with all that serves it. */
function composeServer(
  settings: GatewaySettings,
  deps: Omit<HandlerDeps, 'addresses' | 'connections' | 'pool' | 'onException' | 'now'>,
): Running & { readonly server: NetServer; ready(): Promise<void> } {
  const { telemetry, log } = deps
  const pool = composePool(settings, telemetry, now)
  const { server, certificate } = createClientServer(settings, log)
  const { ranges, hosts } = composeTrustedProxies(settings, log, now)
  const addresses = createAddressReader(ranges, {
    header: settings.clientAddressHeader,
    ipv6Prefix: settings.ipv6Prefix,
    hosts,
  })
  const connections = composeConnections(server, settings, { addresses, telemetry, log, now })
  const tunnels = createTunnels({
    idleMs: settings.tunnelIdleTimeoutMs,
    onOpen: () => telemetry.upgradeOpened(),
    onClose: () => telemetry.upgradeClosed(),
  })
  const onException = createErrorBoundary(telemetry, log)
  serveClients(server, {
    handler: composeHandler(settings, { ...deps, addresses, connections, pool, onException, now }),
    serveInTurn: serializeRequests(settings.requestsPerConnection),
    tunnels,
    telemetry,
    onException,
    onParserError: ({ reply: { status }, why }) => log.debug({ status, reason: why }, 'request rejected'),
  })
  const reload = (): void => void certificate?.reload()
  if (certificate) process.on('SIGHUP', reload)

  return {
    server,
    ready: async () => hosts?.ready(LOOKUP_AT_START_MS),
    async close() {
      endAfterResponses(server, connections.connectionLimit)
      if (settings.shutdownDelayMs > 0) await setTimeout(settings.shutdownDelayMs)
      tunnels.closeAll()
      await drain(server, { ...connections, log }, settings.shutdownGraceMs)
      process.off('SIGHUP', reload)
      certificate?.close()
      hosts?.close()
      connections.close()
      pool.destroy()
    },
  }
}
