import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import { Socket, type Server as NetServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { errors, type ErrorReply } from '../shared/errors.ts'
import type { Turns } from './edge/pipelining.ts'
import type { Handler } from './handler.ts'
import { closeSoon, sendError, type ClientRequest, type ClientResponse } from './reply.ts'
import type { Rejection, Telemetry } from './telemetry.ts'
import { isWebSocketHandshake, offersWebSocket, type Tunnels } from './tunnel.ts'

export type ListenerDeps = {
  readonly handler: Handler
  readonly serveInTurn: Turns
  readonly tunnels: Tunnels
  readonly telemetry: Telemetry
}

/**
 * Gives a server's requests, upgrades and errors to the handler. Typed as what the servers for HTTP and for HTTPS with
 * HTTP/2 have in common: the events are the same, and HTTP/2's requests and responses come with HTTP/1's shape.
 */
export function serveClients(server: NetServer, deps: ListenerDeps): void {
  const { handler, serveInTurn, telemetry } = deps
  const rejectHandshake = (request: ClientRequest, response: ClientResponse): void => {
    telemetry.requestRejected('framing')
    response.shouldKeepAlive = false
    sendError(request, response, errors.badRequest)
  }
  server.on('request', (request: ClientRequest, response: ClientResponse) => {
    if (isGone(request)) return
    serveInTurn(request, response, () => {
      if (offersWebSocket(request)) rejectHandshake(request, response)
      else handler(request, response)
    })
  })
  // The handler says "100 Continue" once a request is let pass: a refused upload is never sent.
  server.on('checkContinue', (request: ClientRequest, response: ClientResponse) => {
    serveInTurn(request, response, () => handler(request, response))
  })
  server.on('checkExpectation', (request: ClientRequest, response: ClientResponse) => {
    serveInTurn(request, response, () => {
      telemetry.requestRejected('other')
      sendError(request, response, errors.expectationFailed)
    })
  })
  server.on('connect', (request: ClientRequest, answer: ClientResponse | Duplex) => {
    telemetry.requestRejected('other')
    if ('writeHead' in answer) sendError(request, answer, errors.methodNotAllowed)
    else endWith(answer, errors.methodNotAllowed)
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, rest: Buffer) => {
    // Answers to requests before it would come out of the tunnel.
    if (responseOn(socket)) socket.destroy()
    // Some versions of Node take up whatever upgrade is offered.
    else if (socket instanceof Socket && isWebSocketHandshake(request))
      serveUpgrade(deps, request, socket, rest)
    else endWith(socket, errors.badRequest)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const answer = answerTo(error)
    if (!answer || !hasBroughtAnything(socket)) {
      socket.destroy()
      return
    }
    telemetry.requestRejected(answer.rejection)
    endWith(socket, answer.reply)
  })
  server.on('tlsClientError', () => telemetry.connectionRefused('tls'))
}

/** With HTTP/2, requests may be taken back before they have got here. */
function isGone(request: ClientRequest | Http2ServerRequest): boolean {
  return 'stream' in request && (request.stream.closed || request.stream.destroyed)
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
  response.on('finish', () => closeSoon(socket))
  // Only who reads from a socket is told of its end: a client that leaves must not keep the backend waiting.
  const onReadable = (): void => undefined
  const onEnd = (): void => void socket.destroy()
  socket.on('readable', onReadable)
  socket.on('end', onEnd)
  handler(request, response, (head, upstream, upstreamRest) => {
    socket.off('readable', onReadable)
    socket.off('end', onEnd)
    response.detachSocket(socket)
    tunnels.open(socket, rest, head, upstream, upstreamRest)
  })
}

/** What is said to a client that has sent something unreadable. Undefined where the error is the connection's. */
function answerTo({ code }: NodeJS.ErrnoException): { reply: ErrorReply; rejection: Rejection } | undefined {
  if (code === 'HPE_HEADER_OVERFLOW') return { reply: errors.fieldsTooLarge, rejection: 'headers-too-large' }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return { reply: errors.requestTimeout, rejection: 'timeout' }
  return code?.startsWith('HPE_') ? { reply: errors.badRequest, rejection: 'framing' } : undefined
}

/** A browser keeps connections ready: one that was not used in time is closed without a word. */
function hasBroughtAnything(socket: Duplex): boolean {
  return !(socket instanceof Socket) || socket.bytesRead > 0
}

/** Answers on a socket whose request could not be read, and closes it: what follows on it cannot be trusted. */
function endWith(socket: Duplex, reply: ErrorReply): void {
  // It has been answered: what else arrives is unreadable too.
  if (socket.writableEnded) return
  const current = responseOn(socket)
  if (current?.req.complete) {
    // What cannot be read comes after the request that is being answered: that answer is the last.
    current.shouldKeepAlive = false
    current.once('finish', () => closeSoon(socket))
  } else if (!socket.writable || current?.headersSent) {
    // Anything written now would be read as the continuation of the response.
    socket.destroy()
  } else {
    socket.write(
      `HTTP/1.1 ${reply.status} ${reply.reason}\r\ncontent-type: application/json\r\n` +
        `content-length: ${reply.body.length}\r\nconnection: close\r\n\r\n${reply.body.toString()}`,
    )
    closeSoon(socket)
  }
}

/** The response that is being given on a socket. */
function responseOn(socket: Duplex): ServerResponse | undefined {
  return (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
}
