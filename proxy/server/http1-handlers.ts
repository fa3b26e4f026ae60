import { errors } from '../../shared/error-replies.ts'
import { faultOf, type Fault } from '../http/connection/http1/faults.ts'
import type { Http1Handlers } from '../http/connection/http1/connections.ts'
import type { Tunnels } from '../http/forward/tunnel.ts'
import type { Http1Exchange, ServedConnection } from '../http/http1/service.ts'
import { hasUnsupportedExpectation } from '../request/request-head.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import { sendError } from '../http/fields/reply.ts'
import { isWebSocketHandshake, offeredProtocol } from '../http/fields/websocket-handshake.ts'
import { allow } from '../request/local-replies.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { OnException } from './error-boundary.ts'
import type { Handler, OnUpgrade } from './handler-options.ts'

export type Http1Deps = {
  readonly handler: Handler
  /** Names of protocols to which requests may switch, besides WebSocket; in lower case. */
  readonly upgradeProtocols: readonly string[]
  /** The tunnels; undefined if handshakes are served as ordinary requests. */
  readonly tunnels: Tunnels | undefined
  readonly telemetry: Telemetry
  /** Called with exceptions that are thrown outside the handler's steps. */
  readonly onException: OnException
  /** Called if the client's input is not a valid request; for the log. */
  readonly onFault: (found: Fault, peerAddress: string | undefined) => void
  /** Serves a connection whose client uses HTTP/2 without TLS. */
  readonly onPreface: Http1Handlers['onPreface']
}

/** Passes HTTP/1 requests to the handler. */
export function createHttp1Handlers(deps: Http1Deps): Http1Handlers {
  const { telemetry, onException, onFault, onPreface } = deps
  return {
    onPreface,
    onRequest(connection, request, response) {
      if (request.method === 'CONNECT') {
        telemetry.requestRejected('other')
        connection.rejectInput(errors.methodNotAllowed, allow)
        return
      }
      try {
        if (
          request.headers.upgrade !== undefined &&
          deps.tunnels &&
          takesUpgrade(request, deps.upgradeProtocols)
        )
          serveHandshake(deps.handler, deps.tunnels, connection, { request, response })
        else deps.handler(request, response)
      } catch (error) {
        onException(error, request, response)
      }
    },
    onFault(connection, found, exchange) {
      const fault = faultOf(found)
      telemetry.requestRejected(fault.rejection)
      onFault(fault, connection.socket.remoteAddress)
      answerFault(connection, fault, exchange)
    },
    onException(error, exchange) {
      if (exchange) onException(error, exchange.request, exchange.response)
      else onException(error)
    },
  }
}

/**
 * Whether to accept an upgrade: WebSocket handshakes, and protocols that the operator has named, with any method, with or without a body.
 * Any other upgrade is ignored, and the request is served as usual (RFC 9110 section 7.8). An invalid handshake is handled as a request, so
 * that its body, if any, is read as one.
 */
export function takesUpgrade(request: ClientRequest, protocols: readonly string[]): boolean {
  const offered = offeredProtocol(request)
  if (offered === undefined || hasUnsupportedExpectation(request)) return false
  return offered === 'websocket' ? isWebSocketHandshake(request) : protocols.includes(offered)
}

/** Serves a handshake in the same steps as any request. Keeps the bytes after it for the tunnel. */
function serveHandshake(
  handler: Handler,
  tunnels: Tunnels,
  connection: ServedConnection,
  { request, response }: Http1Exchange,
): void {
  response.shouldKeepAlive = false
  const open: OnUpgrade = (head, upstream, upstreamRest) => {
    const { socket } = connection
    const early = connection.becomeTunnel()
    try {
      tunnels.open(socket, early, head, upstream, upstreamRest)
    } catch (error) {
      // The 101 may already have been sent, so no error reply is possible.
      socket.destroy()
      response.markClosed()
      throw error
    }
  }
  handler(request, response, open)
}

/** Answers a malformed request and closes the connection, because the bytes after it cannot be trusted. */
function answerFault(
  connection: ServedConnection,
  { reply }: Fault,
  exchange: Http1Exchange | undefined,
): void {
  if (!exchange) return connection.rejectInput(reply, [])
  const { response } = exchange
  if (response.destroyed) connection.closeSoon()
  else if (response.headersSent && !response.writableEnded) response.abort()
  else {
    response.closeAfterResponse()
    sendError(exchange.request, response, reply)
  }
}
