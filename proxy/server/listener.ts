import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Http2ServerRequest, ServerHttp2Stream } from 'node:http2'
import { Socket, type Server as NetServer } from 'node:net'
import { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
import { errors } from '../../shared/error-replies.ts'
import type { OnException } from './error-boundary.ts'
import type { RequestSerializer } from '../connection/pipelining.ts'
import { keepUnparsed } from '../connection/unparsed-bytes.ts'
import { expectsOther } from '../http/framing.ts'
import type { Handler, OnUpgrade } from './handler.ts'
import {
  currentResponse,
  keepDraining,
  leaveHttp,
  oweResponse,
  owesNothing,
} from '../connection/pending-responses.ts'
import { allow } from '../request/local-replies.ts'
import type { ClientRequest, ClientResponse } from '../http/messages.ts'
import { breakOff, closeAfterResponse, closeSoon, sendError } from '../http/reply.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Tunnels } from '../forward/tunnel.ts'
import {
  answerParserError,
  isPaused,
  readParserError,
  type ParserFailure,
} from '../connection/parser-errors.ts'
import { isWebSocketHandshake } from '../http/websocket-handshake.ts'

/** What a client may send before its handshake is answered. It should send nothing (RFC 6455 section 4.1). */
const maxEarlyBytes = 64 * 1024

export type ListenerDeps = {
  readonly handler: Handler
  readonly serveInTurn: RequestSerializer
  readonly tunnels: Tunnels
  readonly telemetry: Telemetry
  /** What becomes of a request in whose way something was thrown that the handler does not know of. */
  readonly onException: OnException
  /** The parser could not read a request; for the log. */
  readonly onParserError: (found: ParserFailure) => void
}

/**
 * Gives a server's requests, upgrades and errors to the handler. Typed as what the servers for HTTP and for HTTPS with
 * HTTP/2 have in common: the events are the same, and HTTP/2's requests and responses come with HTTP/1's shape.
 */
export function serveClients(server: NetServer, deps: ListenerDeps): void {
  const { handler, serveInTurn, telemetry, onException, onParserError } = deps
  const unreadable = new WeakSet<Socket>()
  const serve = guarded(onException, handler)
  const serveRequest = guarded(onException, (request, response) => {
    const stream = streamOf(request)
    if (stream) {
      // Requests of HTTP/2 do not wait for each other. They may be taken back before they have got here.
      if (!stream.closed && !stream.destroyed) serve(request, response)
      return
    }
    oweResponse(request, response)
    if (request.headers.upgrade !== undefined && mayHaveLostBytes(request))
      closeAfterResponse(request, response)
    serveInTurn(request, response, () => {
      // Behind a response that ends the connection nothing is served (RFC 9112 section 9.6), also while what still
      // comes is read and dropped; and what is wrong with a body may have been answered before its turn.
      if (!request.socket.writable) request.resume()
      else if (!response.headersSent) serve(request, response)
    })
  })
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    // Before Node's own listener, which ends the other direction too.
    socket.prependListener('end', breakOffUndelimited)
  })
  server.on('request', serveRequest)
  // The handler says "100 Continue" once a request is let pass: a refused upload is never sent.
  server.on('checkContinue', serveRequest)
  server.on('checkExpectation', serveRequest)
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, rest: Buffer) => {
    // Some versions of Node take up whatever upgrade is offered.
    if (socket instanceof Socket && takesUpgrade(request)) serveUpgrade(deps, request, socket, rest)
    else answerParserError(request.socket, errors.badRequest)
  })
  // Comes with the bare socket, or over HTTP/2 with a response.
  server.on('connect', (request: ClientRequest, connection: Duplex | ClientResponse) => {
    telemetry.requestRejected('other')
    // For this event Node has let go of the socket, which may have to wait for the responses before it.
    if (connection instanceof Duplex) {
      connection.on('error', () => undefined)
      keepDraining(request.socket)
      answerParserError(request.socket, errors.methodNotAllowed, allow)
    } else sendError(request, connection, errors.methodNotAllowed, allow)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // The parser goes on to be fed, and to fail.
    if (unreadable.has(socket)) return
    if (isPaused(error)) return keepUnparsed(socket, error.rawPacket)
    const found = readParserError(error)
    // A browser keeps connections ready: one that was not used in time is closed without a word.
    if (!found || socket.bytesRead === 0) {
      socket.destroy()
      return
    }
    // Behind a response that ends the connection: dropped in the middle of a request, and neither answered nor counted.
    if (!socket.writable) return
    unreadable.add(socket)
    telemetry.requestRejected(found.rejection)
    onParserError(found)
    answerParserError(socket, found.reply)
  })
  server.on('tlsClientError', () => telemetry.connectionRefused('tls'))
}

/**
 * A client that ends its direction is taken as gone. To HTTP/1.0 the end of the connection would say that the response is
 * complete, where it has no length.
 */
function breakOffUndelimited(this: Socket): void {
  const response = currentResponse(this)
  if (response?.req.httpVersion === '1.0' && response.headersSent && !response.writableEnded)
    breakOff(response)
}

function streamOf(request: ClientRequest | Http2ServerRequest): ServerHttp2Stream | undefined {
  return 'stream' in request ? request.stream : undefined
}

type Serve = (request: ClientRequest, response: ClientResponse) => void

function guarded(onException: OnException, serve: Serve): Serve {
  return (request, response) => {
    try {
      serve(request, response)
    } catch (error) {
      onException(error, request, response)
    }
  }
}

/**
 * Whether more than the request has been read. Behind an offer to upgrade that is not taken up Node's parser drops what
 * it has read already, so that the connection has to end with the response. Clients that offer HTTP/2 with the first
 * request of each connection, and send nothing behind it, keep theirs.
 */
function mayHaveLostBytes({ method = '', url = '', rawHeaders, socket }: ClientRequest): boolean {
  const fieldBytes = rawHeaders.reduce((sum, text) => sum + text.length + 2, 0)
  return socket.bytesRead !== `${method} ${url} HTTP/1.1\r\n\r\n`.length + fieldBytes
}

/**
 * A request for a connection to become a tunnel that is to be taken up. Another upgrade than WebSocket is not, and the
 * request is served as if it had not been offered (RFC 9110 section 7.8); a handshake that is none is answered as a
 * request, so that its body, if any, is read as one.
 */
export function takesUpgrade(request: ClientRequest): boolean {
  return isWebSocketHandshake(request) && !expectsOther(request) && owesNothing(request.socket)
}

/** A handshake takes the same steps as any request; its response is written to the bare socket that Node hands over. */
function serveUpgrade(
  { handler, tunnels, onException }: ListenerDeps,
  request: IncomingMessage,
  socket: Socket,
  rest: Buffer,
): void {
  leaveHttp(socket)
  // Errors of the socket are ours from here on; each is followed by `close`.
  socket.on('error', () => undefined)
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  keepDraining(socket)
  // Only who reads from a socket is told of its end: a client that leaves must not keep the backend waiting.
  const early = [rest]
  let earlyBytes = 0
  const onData = (chunk: Buffer): void => {
    early.push(chunk)
    if ((earlyBytes += chunk.length) > maxEarlyBytes) socket.pause()
  }
  const onEnd = (): void => {
    if (!response.writableEnded) socket.destroy()
  }
  socket.on('data', onData)
  socket.on('end', onEnd)
  const leave = (): void => {
    socket.off('data', onData)
    socket.off('end', onEnd)
  }
  response.on('finish', () => {
    leave()
    closeSoon(socket)
  })
  const open: OnUpgrade = (head, upstream, upstreamRest) => {
    leave()
    try {
      tunnels.open(socket, Buffer.concat(early), head, upstream, upstreamRest)
      response.detachSocket(socket)
    } catch (error) {
      // Maybe behind the 101: nothing can be answered any more.
      socket.destroy()
      throw error
    }
  }
  guarded(onException, () => handler(request, response, open))(request, response)
}
