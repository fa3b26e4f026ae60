import { randomUUID } from 'node:crypto'
import type { AddressInfo, ListenOptions, Server as NetServer } from 'node:net'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { createLiveGeo } from './addresses/live-geo.ts'
import { composeCrowdsec, type Crowdsec } from './addresses/crowdsec.ts'
import { createLiveLists, type KeptList } from './addresses/live-lists.ts'
import { createFaultLog } from './listen/fault-log.ts'
import type { Log } from '../../shared/log.ts'
import type { Running } from '../../shared/shutdown.ts'
import { doInTurns } from '../../shared/steps.ts'
import { createClientOperations, type ClientOperations } from '../admin/client-operations.ts'
import { createHealth, type Health } from '../admin/health.ts'
import { listFilesOf } from '../config/clients/list-files.ts'
import { hashTable } from '../config/reload/table-change.ts'
import type { GatewaySettings } from '../config/settings.ts'
import { drain } from '../http/connection/drain.ts'
import { createThrottledClients, type ThrottledClients } from '../limits/clients/throttled-clients.ts'
import { createTunnels } from '../http/forward/tunnel.ts'
import type { Rule } from '../policy.ts'
import { createHttp2Connections } from '../http/connection/http2/connections.ts'
import { createErrorBoundary } from '../server/error-boundary.ts'
import { createHttp2Handlers } from '../server/http2-handlers.ts'
import { serveClients } from '../server/listener.ts'
import type { Names } from '../names/names.ts'
import { createMetrics, type ConfigState, type Metrics } from '../telemetry/metrics/metrics.ts'
import { watchProcess, type MetricSnapshot } from '../telemetry/metrics/prometheus.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Notify } from '../telemetry/webhooks/webhook-event.ts'
import { createTokens, type Tokens } from '../limits/keys/tokens/tokens.ts'
import { composeConnections } from './listen/connections.ts'
import { composeCounting, type Counting } from './counting.ts'
import { composeNames } from './upstreams/names.ts'
import { explainHead } from './explain/explain-head.ts'
import { composeDecisions, type DecisionsListener } from './listen/decisions/listener.ts'
import { composeHandler, type HandlerDeps, type LiveHandler } from './request-handler.ts'
import type { PreparedTable } from './reload/reloader.ts'
import { openPorts, type OpenPorts } from './listen/open-ports.ts'
import { createClientServer, http1Limits, http2Limits } from './listen/server.ts'
import { composeAddresses, composeTrustedProxies } from './addresses/trusted-proxies.ts'
import { composeReplicaExchange } from './observe/replicas.ts'
import { composeTracing } from './observe/tracing.ts'
import { composeUpstreams, type Upstreams } from './upstreams/upstream.ts'
import { version } from './observe/version.ts'

/** The ports that a gateway listens on. */
export type Listening = {
  readonly port: number
  readonly adminPort: number
  /** With `DECISIONS_PORT`. */
  readonly decisionsPort?: number
}

export type Gateway = Running & {
  /** An operator has asked for it, by a signal: reads the settings again, in a worker nothing but certificate and key. */
  reload(): void
  /** Resolves with undefined where the gateway is closed before it listens. */
  listen(): Promise<Listening | undefined>
}

/** Everything that serves clients in one process: the whole gateway except the admin listener. */
export type Serving = Running & {
  readonly metrics: Metrics
  readonly health: Health
  readonly clients: ClientOperations
  /**
   * Makes all that serves requests of another table, a few milliseconds in each turn. Nothing changes before it is put in
   * force, which cannot fail and is atomic for requests: the state of the old table is freed after it.
   *
   * @param tableHash of `hashTable`
   */
  prepare(next: GatewaySettings, tableHash: string): Promise<PreparedTable>
  /** Reads certificate and key again, where there are any. */
  reloadCertificate(): void
  /** Opens the ports for clients and decisions. Resolves with undefined if it was closed before; rejects if one cannot be opened. */
  listen(
    options?: ListenOptions,
  ): Promise<(Omit<Listening, 'adminPort'> & Pick<AddressInfo, 'address'>) | undefined>
}

/** How long a start waits for the addresses of trusted proxies, so that their first requests are believed. */
const LOOKUP_AT_START_MS = 2_000

/** Time that the start waits for the key set, so that the first requests count as they should. */
const KEYS_AT_START_MS = 1_000

/** Time that the start waits for the decisions of CrowdSec. A CrowdSec that is away must not keep the gateway from serving. */
const DECISIONS_AT_START_MS = 2_000

/** Clients over a limit that operators can list: two megabytes at most. */
const THROTTLED_CLIENTS = 10_000

const now = performance.now.bind(performance)

/**
 * @param elsewhere.count makes the counters where they are neither in Redis nor in this process: with several workers
 *   and no Redis the primary process counts for all of them
 * @param elsewhere.names by which names are looked up; unless given, its own
 * @param elsewhere.readConfig in the process that reads the settings
 * @param elsewhere.readNode reads what Node knows of this process; unless given, it is watched until it ends
 * @param elsewhere.now monotonic milliseconds that counters in memory go by; unless given, those of this process
 */
export async function composeServing(
  settings: GatewaySettings,
  log: Log,
  elsewhere: {
    readonly count?: ((telemetry: Telemetry, forgotten: ThrottledClients['forget']) => Counting) | undefined
    readonly names?: Names | undefined
    readonly readConfig?: () => ConfigState
    /** In a worker: the id of its gateway among the replicas. */
    readonly gatewayId?: string | undefined
    readonly readNode?: () => Promise<MetricSnapshot>
    readonly now?: () => number
    /** In a worker: the decisions of CrowdSec, which the primary process reads. */
    readonly crowdsec?: Crowdsec | undefined
    /** In a worker: the list of addresses that is in force, where its file cannot be used. */
    readonly askForKeptList?: (location: string) => Promise<KeptList | undefined>
    /** Tells of bans and of the breaker, where somebody wants to know. */
    readonly notify?: Notify | undefined
  } = {},
): Promise<Serving> {
  const rules = rulesInForce(settings)
  const metrics = createMetrics({
    policies: rules.map(({ policy }) => policy),
    limitsEnabled: !settings.rateLimitingDisabled,
    version,
    readNode: elsewhere.readNode ?? watchProcess('sluice_'),
    ...(elsewhere.readConfig && { readConfig: elsewhere.readConfig }),
  })
  const { telemetry } = metrics
  const crowdsec =
    settings.crowdsec && (elsewhere.crowdsec ?? composeCrowdsec(settings.crowdsec, { telemetry, log }))
  if (crowdsec) telemetry.observeTable('crowdsec', () => crowdsec.table.readUse())
  const addressLists = createLiveLists(log, {
    crowdsec: crowdsec?.table,
    askForKept: elsewhere.askForKeptList,
  })
  telemetry.observeLists(() => addressLists.readUse())
  const firstLists = await addressLists.prepare(listFilesOf(settings))
  firstLists.commit()
  const liveGeo = createLiveGeo(log)
  const firstGeo = await liveGeo.prepare(settings.geoip)
  firstGeo.commit()
  const tracing = await composeTracing(settings, telemetry, log)
  const throttledClients = createThrottledClients(THROTTLED_CLIENTS, elsewhere.now ?? now)
  telemetry.observeTable('limited', () => throttledClients.readUse())
  const forgotten: ThrottledClients['forget'] = (policyName, partitionKey) =>
    throttledClients.forget(policyName, partitionKey)
  const counters =
    elsewhere.count?.(telemetry, forgotten) ??
    (await composeCounting(settings, log, telemetry, forgotten, elsewhere.now, elsewhere.notify))
  // Whether a client is over a limit of its own shows with its next request.
  counters.clientTable.entries.onOverride = forgotten
  const health = createHealth({
    storeState: () => counters.storeState(),
    unavailableStoreNodes: counters.unavailableNodes,
    upstreamState: () => metrics.upstreamState(),
    readServers: () => clients.readServers(),
  })
  const isStopping = (): boolean => health.read().status === 'stopping'
  const { limiter } = counters
  const readTokens = (from: GatewaySettings, running?: Tokens): Promise<Tokens | undefined> => {
    return createTokens(from.jwt, rulesInForce(from), { telemetry, log, now, wallNow: Date.now }, running)
  }
  let tokens = await readTokens(settings)
  let { refusals } = settings
  const clients = composeServer(settings, {
    names: elsewhere.names ?? composeNames(),
    limiter,
    clientTable: counters.clientTable,
    lists: firstLists.lists,
    geo: firstGeo.geo,
    tokens: tokens?.reader,
    throttledClients,
    telemetry,
    tracing,
    isStopping,
    log,
  })

  let opening: Promise<OpenPorts> | undefined
  let tableHash = hashTable(settings)
  const replicas = composeReplicaExchange({
    counters,
    throttledClients,
    gateway: elsewhere.gatewayId ?? randomUUID(),
    readTableHash: () => tableHash,
    readHealth: () => health.read(),
    log,
  })

  return {
    metrics,
    health,
    clients: {
      ...createClientOperations({
        counters: counters.operations,
        clientTable: counters.clientTable,
        limited: throttledClients,
        replicas,
        onReset: () => telemetry.clientReset(),
        logAddresses: settings.logAddresses,
        log,
      }),
      explain(asked) {
        const runTime = {
          entries: counters.clientTable.entries,
          refusals,
          hasPlace: clients.hasPlace,
        }
        const known = { table: clients.readTable(), tokens: tokens?.uncounted, runTime }
        return explainHead(asked, settings, known)
      },
    },
    async prepare(next, nextHash) {
      await setImmediate()
      const nextLists = await addressLists.prepare(listFilesOf(next))
      const nextGeo = await liveGeo.prepare(next.geoip)
      const nextTokens = await readTokens(next, tokens)
      await nextTokens?.ready(KEYS_AT_START_MS)
      const read = { tokens: nextTokens?.reader, lists: nextLists.lists, geo: nextGeo.geo }
      const useTable = await doInTurns(clients.prepare(next, read))
      return {
        async commit() {
          useTable()
          nextLists.commit()
          nextGeo.commit()
          ;({ refusals } = next)
          tableHash = nextHash
          // Requests that have begun still read their tokens with its keys.
          if (tokens?.keySet !== nextTokens?.keySet) tokens?.close()
          tokens = nextTokens
          await setImmediate()
          await counters.useRules(rulesInForce(next))
          const policies = rulesInForce(next).map(({ policy }) => policy)
          await doInTurns(telemetry.tableChanged(policies, next.routes?.map(({ name }) => name) ?? []))
          await setImmediate()
          throttledClients.keepPolicies(new Set(policies.map(({ name }) => name)))
        },
        abort: () => nextTokens?.keySet !== tokens?.keySet && nextTokens?.close(),
      }
    },
    reloadCertificate: () => clients.reloadCertificate(),
    async listen(options = {}) {
      await Promise.all([
        counters.ready(),
        clients.ready(),
        tokens?.ready(KEYS_AT_START_MS),
        crowdsec?.ready(DECISIONS_AT_START_MS),
      ])
      if (isStopping()) return undefined
      opening = openPorts(settings, clients, options)
      const ports = await opening
      if (isStopping()) return undefined
      health.markReady()
      return ports
    },
    async close() {
      health.beginStopping()
      // A server that is about to listen would do so after it was closed.
      await opening?.catch(() => undefined)
      await clients.close()
      addressLists.close()
      liveGeo.close()
      crowdsec?.close()
      tokens?.close()
      replicas?.close()
      await Promise.all([counters.close(), tracing?.close()])
    },
  }
}

/** The rules in force: none with rate limiting off. */
export function rulesInForce({ rateLimitingDisabled, rules }: GatewaySettings): readonly Rule[] {
  return rateLimitingDisabled ? [] : rules
}

/** The server that clients connect to, and how it is closed: gracefully, then with all that serves it. */
function composeServer(
  settings: GatewaySettings,
  deps: Omit<HandlerDeps, 'addresses' | 'connections' | 'upstreams' | 'onException' | 'now'> & {
    readonly names: Names
  },
): Running &
  Pick<LiveHandler, 'prepare' | 'readTable' | 'hasPlace'> &
  Pick<Upstreams, 'readServers'> & {
    readonly server: NetServer
    readonly decisions: DecisionsListener | undefined
    reloadCertificate(): void
    ready(): Promise<void>
  } {
  const { names, telemetry, log } = deps
  const upstreams = composeUpstreams(settings, telemetry, { names, log, now })
  const clientServer = createClientServer(settings, log)
  const { server, certificate } = clientServer
  const { ranges, hosts } = composeTrustedProxies(settings, { names, log, now })
  const addresses = composeAddresses(settings, { ranges, hosts })
  const connections = composeConnections(clientServer, settings, { addresses, telemetry, log, now })
  const tunnels = createTunnels({
    idleMs: settings.tunnelIdleTimeoutMs,
    onOpen: () => telemetry.upgradeOpened(),
    onClose: () => telemetry.upgradeClosed(),
  })
  const onException = createErrorBoundary(telemetry, log)
  const live = composeHandler(settings, { ...deps, addresses, connections, upstreams, onException, now })
  const onFault = createFaultLog(log, settings)
  const http2Handlers = createHttp2Handlers({
    handler: live.handler,
    telemetry,
    onException,
    peers: { addresses, addressOf: (socket) => connections.connectionLimit.addressOf(socket) },
    slowClients: connections.slowClients,
    onFault,
    log,
  })
  const http2 = createHttp2Connections(http2Limits(settings), http2Handlers, now)
  const http1 = serveClients(server, {
    handler: live.handler,
    limits: http1Limits(settings),
    http2,
    tunnels,
    upgradeProtocols: settings.upgradeProtocols,
    telemetry,
    onException,
    onFault,
    now,
  })
  const { live: options } = live
  const decisions =
    settings.decisionsPort === undefined
      ? undefined
      : composeDecisions(settings, { live: options, addresses, telemetry, onException, log, now })

  return {
    server,
    decisions,
    prepare: (...table) => live.prepare(...table),
    readTable: () => live.readTable(),
    hasPlace: live.hasPlace,
    readServers: () => upstreams.readServers(),
    reloadCertificate: () => void certificate?.reload(),
    ready: async () => hosts?.ready(LOOKUP_AT_START_MS),
    async close() {
      http1.endAfterResponses()
      decisions?.endAfterResponses()
      if (settings.shutdownDelayMs > 0) await setTimeout(settings.shutdownDelayMs)
      tunnels.closeAll()
      await Promise.all([
        drain(server, { ...connections, http1, http2, log }, settings.shutdownGraceMs),
        decisions?.drain(settings.shutdownGraceMs),
      ])
      certificate?.close()
      hosts?.close()
      connections.close()
      upstreams.destroy()
    },
  }
}
