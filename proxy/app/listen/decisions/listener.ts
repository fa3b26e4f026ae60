import type { ListenOptions } from 'node:net'
import { createFaultLog } from '../fault-log.ts'
import type { Log } from '../../../../shared/log.ts'
import type { GatewaySettings } from '../../../config/settings.ts'
import { ConnectionLimit } from '../../../http/connection/connection-limit.ts'
import { drain, untilClosed } from '../../../http/connection/drain.ts'
import { ADDED_FIELDS } from '../../../request/auth-request.ts'
import type { AddressReader } from '../../../request/addresses/client-address.ts'
import type { OnException } from '../../../server/error-boundary.ts'
import type { HandlerOptions, LiveOptions } from '../../../server/handler-options.ts'
import { createAuthHandler } from '../../../server/exchange.ts'
import { serveClients } from '../../../server/listener.ts'
import type { Telemetry } from '../../../telemetry/telemetry.ts'
import { createPlainServer, http1Limits, listenOn } from '../server.ts'

/** The listener for auth requests of other proxies. */
export type DecisionsListener = {
  /** Resolves with the port. */
  listen(options: ListenOptions): Promise<number>
  /** Makes connections end after the next response. */
  closeAfterResponses(): void
  /** Stops accepting connections, and resolves when the open ones have closed, after `graceMs` at the latest. */
  drain(graceMs: number): Promise<void>
  /** Resolves when the requests of these connections have ended, too. */
  closed(): Promise<void>
}

type DecisionsDeps = {
  /** The options of the clients' listener. */
  readonly live: LiveOptions
  readonly addresses: AddressReader
  readonly telemetry: Telemetry
  readonly onException: OnException
  readonly log: Log
  readonly now: () => number
}

/**
 * The head of an auth request may have this many times `MAX_HEADER_SIZE`, because it has the headers of the original request and those that
 * the proxy adds. It must not fail for headers that the proxy has accepted: nginx accepts 32 KB, and answers 500 if the auth request fails.
 */
const HEADER_SIZE_FACTOR = 4

/** This listener does not serve HTTP/2. */
const noHttp2 = { close: () => undefined, destroy: () => undefined }

/** Composes the listener of `DECISIONS_PORT`: HTTP/1.1, with the limits and timeouts of the clients' listener. */
export function composeDecisions(settings: GatewaySettings, deps: DecisionsDeps): DecisionsListener {
  const { addresses, telemetry, log, now } = deps
  const server = createPlainServer()
  const connectionLimit = new ConnectionLimit(server, {
    maxConnections: settings.maxConnections,
    maxConnectionsPerClient: settings.maxConnectionsPerClient,
    readPeer: (address) => addresses.readPeer(address),
    readNamedAddress: undefined,
    telemetry: {
      ...telemetry,
      observeTable: (name, read) => telemetry.observeTable(`decisions-${name}`, read),
    },
    log,
    logAddresses: settings.logAddresses,
    now,
  })
  const maxHeaderBytes = settings.maxHeaderBytes * HEADER_SIZE_FACTOR
  const maxHeaderCount = settings.maxHeaderCount + ADDED_FIELDS
  const http1 = serveClients(server, {
    handler: createAuthHandler(liveFor(deps.live, connectionLimit)),
    limits: http1Limits({ ...settings, maxHeaderBytes, maxHeaderCount }),
    http2: undefined,
    // A WebSocket handshake is decided like any other request. Some proxies copy its headers to the auth request.
    tunnels: undefined,
    upgradeProtocols: [],
    telemetry,
    onException: deps.onException,
    onFault: createFaultLog(log, settings),
    now,
  })
  return {
    listen: async (options) =>
      (await listenOn(server, options, { host: 'HOST', port: 'DECISIONS_PORT' })).port,
    closeAfterResponses: () => http1.closeAfterResponses(),
    drain: (graceMs) => drain(server, { connectionLimit, http1, http2: noHttp2, log }, graceMs),
    closed: () => untilClosed(connectionLimit),
  }
}

/**
 * Adapts the current options of the clients' listener to connections of this listener.
 *
 * @internal exported for tests
 */
export function liveFor(live: LiveOptions, connections: HandlerOptions['connections']): LiveOptions {
  let from: HandlerOptions | undefined
  let options: HandlerOptions
  return {
    get options() {
      if (live.options !== from) {
        from = live.options
        // The body of an auth request is not that of the original request.
        options = { ...from, connections, readsBodies: false }
      }
      return options
    },
  }
}
