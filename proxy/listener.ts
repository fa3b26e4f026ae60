import { ServerResponse, type IncomingMessage, type ServerOptions } from 'node:http'
import { Socket, type Server as NetServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { errors, type ErrorReply } from '../shared/errors.ts'
import type { Handler } from './handler.ts'
import { sendError, type ClientRequest, type ClientResponse } from './reply.ts'
import type { Rejection, Telemetry } from './telemetry.ts'
import { isWebSocketHandshake, offersWebSocket, type Tunnels } from './tunnel.ts'

/** For the server that faces the clients. Nothing lenient: what Node's strict parser refuses never reaches the steps. */
export const clientServerOptions: ServerOptions = {
  insecureHTTPParser: false,
  maxHeaderSize: 16 * 1024,
  headersTimeout: 30_000,
  // An upload may take as long as it goes on.
  requestTimeout: 0,
  connectionsCheckingInterval: 2_000,
  // Longer than a load balancer's usual 60 s, so that it never sends into a connection that closes.
  keepAliveTimeout: 65_000,
  noDelay: true,
  // Missing and wrong `Host` fields are answered by the handler, in the one error shape.
  requireHostHeader: false,
  optimizeEmptyRequests: true,
  // Another upgrade than WebSocket is not taken up, and the request served as if it had not been offered (RFC 9110
  // section 7.8). A handshake that is none is answered as a request, so that its body, if any, is read as one.
  shouldUpgradeCallback: isWebSocketHandshake,
}

export type ListenerDeps = {
  readonly handler: Handler
  readonly tunnels: Tunnels
  readonly telemetry: Telemetry
}

/**
 * Gives a server's requests, upgrades and errors to the handler. Typed as what the servers for HTTP and for HTTPS with
 * HTTP/2 have in common: the events are the same, and HTTP/2's requests and responses come with HTTP/1's shape.
 */
export function serveClients(server: NetServer, { handler, tunnels, telemetry }: ListenerDeps): void {
  const rejectHandshake = (request: ClientRequest, response: ClientResponse): void => {
    telemetry.requestRejected('framing')
    response.shouldKeepAlive = false
    sendError(request, response, errors.badRequest)
  }
  server.on('request', (request: ClientRequest, response: ClientResponse) => {
    if (offersWebSocket(request)) rejectHandshake(request, response)
    else handler(request, response)
  })
  // The handler says "100 Continue" once a request is let pass: a refused upload is never sent.
  server.on('checkContinue', handler)
  server.on('checkExpectation', (request: ClientRequest, response: ClientResponse) => {
    telemetry.requestRejected('other')
    sendError(request, response, errors.expectationFailed)
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, rest: Buffer) => {
    if (socket instanceof Socket) serveUpgrade({ handler, tunnels, telemetry }, request, socket, rest)
    else socket.destroy()
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const { reply, rejection } = replyTo(error)
    telemetry.requestRejected(rejection)
    endWith(socket, reply)
  })
  server.on('connection', (socket: Socket) => {
    telemetry.connectionOpened()
    socket.on('close', () => telemetry.connectionClosed())
  })
}

/** A handshake takes the same steps as any request; its response is written to the bare socket that Node hands over. */
function serveUpgrade(
  { handler, tunnels }: ListenerDeps,
  request: IncomingMessage,
  socket: Socket,
  rest: Buffer,
): void {
  // Errors of the socket are ours from here on; each is followed by `close`.
  socket.on('error', () => undefined)
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  response.on('finish', () => socket.end())
  handler(request, response, (head, upstream, upstreamRest) => {
    response.detachSocket(socket)
    tunnels.open(socket, rest, head, upstream, upstreamRest)
  })
}

function replyTo(error: NodeJS.ErrnoException): { reply: ErrorReply; rejection: Rejection } {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return { reply: errors.fieldsTooLarge, rejection: 'headers-too-large' }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { reply: errors.requestTimeout, rejection: 'timeout' }
    default:
      return { reply: errors.badRequest, rejection: 'framing' }
  }
}

/** Answers on a socket whose request could not be read, and closes it: what follows on it cannot be trusted. */
function endWith(socket: Duplex, reply: ErrorReply): void {
  if (!socket.writable || hasBegunResponse(socket)) {
    socket.destroy()
    return
  }
  socket.end(
    `HTTP/1.1 ${reply.status} ${reply.reason}\r\ncontent-type: application/json\r\n` +
      `content-length: ${reply.body.length}\r\nconnection: close\r\n\r\n${reply.body.toString()}`,
  )
}

/** Part of a response is on the socket already: anything written now would be read as its continuation. */
function hasBegunResponse(socket: Duplex): boolean {
  const { _httpMessage: response } = socket as { _httpMessage?: ServerResponse | null }
  return response?.headersSent === true
}
