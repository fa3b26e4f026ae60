import { createServer, type Server } from 'node:http'
import type { ListenOptions } from 'node:net'
import type { Log } from '../../../shared/log.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { limitConnections, type ConnectionLimit } from '../../connection/connection-limit.ts'
import { drain, endAfterResponses } from '../../connection/drain.ts'
import { endIdleConnections } from '../../connection/idle-timeout.ts'
import { serializeRequests } from '../../connection/pipelining.ts'
import type { Tunnels } from '../../forward/tunnel.ts'
import type { AddressReader } from '../../request/client-address.ts'
import type { OnException } from '../../server/error-boundary.ts'
import type { HandlerOptions } from '../../server/handler-options.ts'
import { createAuthHandler, type LiveOptions } from '../../server/handler.ts'
import { serveClients } from '../../server/listener.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { http1Options, listenOn } from '../server.ts'

/** Where other proxies ask whether to let a request pass. */
export type DecisionsListener = {
  /** Resolves with the port. */
  listen(options: ListenOptions): Promise<number>
  /** From now on connections end after the response. */
  endAfterResponses(): void
  drain(graceMs: number): Promise<void>
}

type DecisionsDeps = {
  /** Of the clients' listener. */
  readonly live: LiveOptions
  readonly addresses: AddressReader
  readonly tunnels: Tunnels
  readonly telemetry: Telemetry
  readonly onException: OnException
  readonly log: Log
  readonly now: () => number
}

/**
 * An auth request has the headers of the original request beside those that the proxy adds. What the proxy has taken is not
 * to fail here: nginx takes 32 KB, and makes 500 of it.
 */
const MORE_HEADER_BYTES = 4

/** HTTP sessions of version 2, which this listener has none of. */
const noSessions = { close: () => undefined, destroy: () => undefined }

/** The listener of `DECISIONS_PORT`: HTTP/1.1, with the limits and timeouts of the clients' listener. */
export function composeDecisions(settings: GatewaySettings, deps: DecisionsDeps): DecisionsListener {
  const { addresses, telemetry, log, now } = deps
  const server = createDecisionsServer(settings)
  const connectionLimit = limitConnections(server, {
    maxConnections: settings.maxConnections,
    maxConnectionsPerClient: settings.maxConnectionsPerClient,
    addresses,
    readNamedAddress: undefined,
    telemetry: {
      ...telemetry,
      observeTable: (name, read) => telemetry.observeTable(`decisions-${name}`, read),
    },
    log,
    logAddresses: settings.logAddresses,
    now,
  })
  const limits = { idleMs: settings.idleTimeoutMs, headersMs: settings.headersTimeoutMs }
  endIdleConnections(connectionLimit.connections, limits, now)
  serveClients(server, {
    handler: createAuthHandler(liveFor(deps.live, { connectionLimit })),
    serveInTurn: serializeRequests(settings.requestsPerConnection),
    tunnels: deps.tunnels,
    telemetry,
    onException: deps.onException,
    onParserError: ({ reply: { status }, why }) => log.debug({ status, reason: why }, 'request rejected'),
    cleartextHttp2: undefined,
  })
  return {
    listen: async (options) => (await listenOn(server, options, 'HOST')).port,
    endAfterResponses: () => endAfterResponses(server, connectionLimit),
    drain: (graceMs) => drain(server, { connectionLimit, sessions: noSessions, log }, graceMs),
  }
}

function createDecisionsServer(settings: GatewaySettings): Server {
  const maxHeaderBytes = settings.maxHeaderBytes * MORE_HEADER_BYTES
  const server = createServer({
    ...http1Options({ ...settings, maxHeaderBytes }),
    // A handshake is decided about as any request: some proxies pass its headers on.
    shouldUpgradeCallback: () => false,
  })
  // No limit here: fields beyond it would be left out without a word. The handler counts.
  return Object.assign(server, { maxHeadersCount: 0 })
}

/** The options in force of the clients' listener, for connections of this one. */
function liveFor(
  live: LiveOptions,
  { connectionLimit }: { readonly connectionLimit: ConnectionLimit },
): LiveOptions {
  const addressOf: HandlerOptions['addressOf'] = (socket) => connectionLimit.addressOf(socket)
  let from: HandlerOptions | undefined
  let options: HandlerOptions
  return {
    get options() {
      if (live.options !== from) {
        from = live.options
        options = { ...from, addressOf }
      }
      return options
    },
  }
}
