import type { Server as NetServer } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import type { Log } from '../../../shared/log.ts'
import type { Running } from '../../../shared/shutdown.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { drain, untilClosed } from '../../http/connection/drain.ts'
import type { Http1Connections } from '../../http/connection/http1/connections.ts'
import { createHttp2Connections, type Http2Connections } from '../../http/connection/http2/connections.ts'
import type { CertificatePair } from '../../http/connection/tls/certificate-pair.ts'
import { createTunnels, type Tunnels } from '../../http/forward/tunnel.ts'
import type { Names } from '../../names/names.ts'
import type { TrustedHosts } from '../../request/addresses/trusted-hosts.ts'
import { createErrorBoundary } from '../../server/error-boundary.ts'
import type { Handler } from '../../server/handler-options.ts'
import { createHttp2Handlers } from '../../server/http2-handlers.ts'
import { serveClients } from '../../server/listener.ts'
import { composeAddresses, composeTrustedProxies } from '../addresses/trusted-proxies.ts'
import { now } from '../counting.ts'
import { composeConnections, type ClientConnections } from '../listen/connections.ts'
import { composeDecisions, type DecisionsListener } from '../listen/decisions/listener.ts'
import { createFaultLog } from '../listen/fault-log.ts'
import { createClientServer, http1Limits, http2Limits, type ClientServer } from '../listen/server.ts'
import { composeUpstreams, type Upstreams } from '../upstreams/upstream.ts'
import { composeHandler, type HandlerDeps, type LiveHandler, type RequestDeps } from './request-handler.ts'

/** The server that clients connect to, with the request handler and the backends. */
export type ClientListener = Running &
  Pick<LiveHandler, 'prepare' | 'readTable' | 'hasPlace'> &
  Pick<Upstreams, 'readServers'> & {
    readonly server: NetServer
    readonly decisions: DecisionsListener | undefined
    reloadCertificate(): void
    /** Resolves when the addresses of trusted proxies are known, or after a short wait. */
    ready(): Promise<void>
  }

export type ListenerOptions = RequestDeps & {
  readonly names: Names
  /** The result of `readCertificate`. */
  readonly certificate: CertificatePair | undefined
  /** Whether to log that the certificate has expired. */
  readonly warnsOfCertificate: boolean
}

/** How long the start waits for the addresses of trusted proxies, so that their first requests are trusted. */
const LOOKUP_AT_START_MS = 2_000

/**
 * Composes the listener for clients and, with `DECISIONS_PORT`, the listener for auth requests. Neither listens yet.
 *
 * @throws the system's error if the file of an authority cannot be read
 */
export function composeClientListener(settings: GatewaySettings, options: ListenerOptions): ClientListener {
  const { names, certificate: pair, warnsOfCertificate, telemetry, log } = options
  const upstreams = composeUpstreams(settings, telemetry, { names, log, now })
  const clientServer = createClientServer(settings, { pair, warnsOfCertificate, telemetry, log })
  const { ranges, hosts } = composeTrustedProxies(settings, { names, log, now })
  const addresses = composeAddresses(settings, { ranges, hosts })
  const connections = composeConnections(clientServer, settings, { addresses, telemetry, log, now })
  const onException = createErrorBoundary(telemetry, log)
  const deps = { ...options, addresses, connections, upstreams, onException, now }
  const requests = composeHandler(settings, deps)
  const protocols = composeProtocols(settings, clientServer, requests.handler, deps)
  const decisions =
    settings.decisionsPort === undefined
      ? undefined
      : composeDecisions(settings, { ...deps, live: requests.live })
  const parts = { ...protocols, clientServer, connections, decisions, hosts, upstreams, log }
  return {
    server: clientServer.server,
    decisions,
    prepare: (next, read) => requests.prepare(next, read),
    readTable: () => requests.readTable(),
    hasPlace: requests.hasPlace,
    readServers: () => upstreams.readServers(),
    reloadCertificate: () => void clientServer.certificate?.reload(),
    ready: async () => hosts?.ready(LOOKUP_AT_START_MS),
    close: () => closeGracefully(parts, settings),
  }
}

/** The connections of clients, by protocol. */
type Protocols = {
  readonly http1: Http1Connections
  readonly http2: Http2Connections
  readonly tunnels: Tunnels
}

function composeProtocols(
  settings: GatewaySettings,
  { server }: ClientServer,
  handler: Handler,
  deps: HandlerDeps,
): Protocols {
  const { addresses, connections, telemetry, onException, log } = deps
  const onFault = createFaultLog(log, settings)
  const tunnels = createTunnels({
    idleMs: settings.tunnelIdleTimeoutMs,
    onOpen: () => telemetry.upgradeOpened(),
    onClose: () => telemetry.upgradeClosed(),
  })
  const http2Handlers = createHttp2Handlers({
    handler,
    telemetry,
    onException,
    peers: { addresses, connections: connections.connectionLimit },
    slowClients: connections.slowClients,
    onFault,
    log,
  })
  const http2 = createHttp2Connections(http2Limits(settings), http2Handlers, now)
  const http1 = serveClients(server, {
    handler,
    limits: http1Limits(settings),
    http2,
    tunnels,
    upgradeProtocols: settings.upgradeProtocols,
    telemetry,
    onException,
    onFault,
    now,
  })
  return { http1, http2, tunnels }
}

/** Stops accepting connections, lets requests in flight finish, and then closes all parts that serve them. */
async function closeGracefully(
  parts: Protocols & {
    readonly clientServer: ClientServer
    readonly connections: ClientConnections
    readonly decisions: DecisionsListener | undefined
    readonly hosts: TrustedHosts | undefined
    readonly upstreams: Upstreams
    readonly log: Log
  },
  { shutdownDelayMs, shutdownGraceMs }: GatewaySettings,
): Promise<void> {
  const { http1, http2, tunnels, connections, decisions, log } = parts
  const { server, certificate } = parts.clientServer
  http1.closeAfterResponses()
  decisions?.closeAfterResponses()
  if (shutdownDelayMs > 0) await setTimeout(shutdownDelayMs)
  tunnels.closeAll()
  await Promise.all([
    drain(server, { ...connections, http1, http2, log }, shutdownGraceMs),
    decisions?.drain(shutdownGraceMs),
  ])
  certificate?.close()
  parts.hosts?.close()
  connections.close()
  // Requests that are cut off are logged as aborted by the gateway only if this comes before the end of their connections.
  parts.upstreams.destroy()
  await Promise.all([untilClosed(connections.connectionLimit), decisions?.closed()])
}
