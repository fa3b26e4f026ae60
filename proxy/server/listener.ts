import type { Http2SecureServer, Http2Server, Http2ServerRequest } from 'node:http2'
import type { Server, Socket } from 'node:net'
import { TLSSocket, Server as TlsServer } from 'node:tls'
import { errors } from '../../shared/error-replies.ts'
import { admitted } from '../connection/connection-limit.ts'
import {
  createHttp1Connections,
  type Http1Connections,
  type Http1Limits,
} from '../connection/http1/connections.ts'
import { servePreface } from '../connection/http2/cleartext.ts'
import type { Tunnels } from '../forward/tunnel.ts'
import type { ClientRequest, ClientResponse } from '../http/messages.ts'
import { sendError } from '../http/reply.ts'
import { allow } from '../request/local-replies.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { OnException } from './error-boundary.ts'
import type { Handler } from './handler.ts'
import { createHttp1Handlers, type Http1Deps } from './http1-handlers.ts'

export type ListenerDeps = Omit<Http1Deps, 'onPreface'> & {
  readonly limits: Http1Limits
  /**
   * Serves connections of HTTP/2, which are handed to it: those that agreed on it with TLS, otherwise those that begin with its
   * preface. Undefined where there are none.
   */
  readonly http2: Http2Server | Http2SecureServer | undefined
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** Serves the connections that a server, plain or of TLS, has admitted. */
export function serveClients(server: Server, deps: ListenerDeps): Http1Connections {
  const { http2, telemetry } = deps
  const isTls = server instanceof TlsServer
  const onPreface =
    http2 && !isTls
      ? (socket: Socket, bytes: Buffer) => servePreface(http2 as Http2Server, socket, bytes)
      : undefined
  const http1 = createHttp1Connections(deps.limits, createHttp1Handlers({ ...deps, onPreface }), deps.now)
  if (http2) serveHttp2Requests(http2, deps)
  server.on(isTls ? 'secureConnection' : admitted, (socket: Socket) => {
    if (http2 && socket instanceof TLSSocket && socket.alpnProtocol === 'h2') {
      socket.allowHalfOpen = false
      http2.emit('secureConnection', socket)
    } else http1.serve(socket)
  })
  server.on('tlsClientError', (_error: Error, socket: Socket) => {
    telemetry.connectionRefused('tls')
    socket.destroy()
  })
  return http1
}

/** HTTP/2 requests have the API of Node's HTTP/1, and do not wait for each other. */
function serveHttp2Requests(
  server: Http2Server | Http2SecureServer,
  {
    handler,
    telemetry,
    onException,
  }: { handler: Handler; telemetry: Telemetry; onException: OnException; tunnels: Tunnels | undefined },
): void {
  const serve = (request: ClientRequest & Http2ServerRequest, response: ClientResponse): void => {
    // The stream may have been reset already.
    if (request.stream.closed || request.stream.destroyed) return
    try {
      handler(request, response)
    } catch (error) {
      onException(error, request, response)
    }
  }
  server.on('request', serve as never)
  // The handler sends "100 Continue" once a request is allowed, so that a refused upload is never sent.
  server.on('checkContinue', serve as never)
  server.on('checkExpectation', serve as never)
  server.on('connect', ((request: ClientRequest, response: ClientResponse) => {
    telemetry.requestRejected('other')
    sendError(request, response, errors.methodNotAllowed, allow)
  }) as never)
}
