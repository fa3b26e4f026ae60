import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Http2Server, Http2ServerRequest, ServerHttp2Stream } from 'node:http2'
import { Socket, type Server as NetServer } from 'node:net'
import { Duplex } from 'node:stream'
import { Server as TlsServer } from 'node:tls'
import { errors } from '../../shared/error-replies.ts'
import { isPreface, serveHttp2 } from '../connection/http2/cleartext.ts'
import {
  answerParserError,
  isPaused,
  readParserError,
  type ParserFailure,
} from '../connection/parser-errors.ts'
import {
  currentResponse,
  hasAnsweredAll,
  keepDraining,
  latestResponse,
  leaveHttp,
  oweResponse,
} from '../connection/pending-responses.ts'
import type { RequestSerializer } from '../connection/pipelining.ts'
import { keepUnparsed } from '../connection/unparsed-bytes.ts'
import type { Tunnels } from '../forward/tunnel.ts'
import { expectsOther } from '../http/framing.ts'
import type { ClientRequest, ClientResponse } from '../http/messages.ts'
import { breakOff, closeAfterResponse, closeSoon, sendError } from '../http/reply.ts'
import { isWebSocketHandshake } from '../http/websocket-handshake.ts'
import { allow } from '../request/local-replies.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { OnException } from './error-boundary.ts'
import type { OnUpgrade } from './handler-options.ts'
import type { Handler } from './handler.ts'

/**
 * Maximum bytes that a client may send before its handshake is answered. It should send none (RFC 6455 section 4.1).
 */
const maxEarlyBytes = 64 * 1024

export type ListenerDeps = {
  readonly handler: Handler
  readonly serveInTurn: RequestSerializer
  readonly tunnels: Tunnels
  readonly telemetry: Telemetry
  /** Called with exceptions that are thrown outside of the handler's steps. */
  readonly onException: OnException
  /** The parser could not read a request; for the log. */
  readonly onParserError: (found: ParserFailure) => void
  /** Serves connections of HTTP/2 without TLS; undefined where there are none. */
  readonly cleartextHttp2: Http2Server | undefined
}

/**
 * Connects a server's requests, upgrades and errors to the handler. It is typed as what the servers for HTTP and for
 * HTTPS with HTTP/2 have in common: the events are the same, and HTTP/2 requests and responses have the API of HTTP/1.
 */
export function serveClients(server: NetServer, deps: ListenerDeps): void {
  const { handler, serveInTurn, telemetry, onException, onParserError, cleartextHttp2 } = deps
  const unreadable = new WeakSet<Socket>()
  const serve = guarded(onException, handler)
  const serveRequest = guarded(onException, (request, response) => {
    const stream = streamOf(request)
    if (stream) {
      // HTTP/2 requests do not wait for each other. Their stream may have been reset already.
      if (!stream.closed && !stream.destroyed) serve(request, response)
      return
    }
    oweResponse(request, response)
    if (request.headers.upgrade !== undefined && mayHaveLostBytes(request))
      closeAfterResponse(request, response)
    serveInTurn(request, response, () => {
      // After a response that closes the connection nothing is served (RFC 9112 section 9.6), also while incoming bytes
      // are read and dropped. A malformed body may have been answered before its turn.
      if (!request.socket.writable) request.resume()
      else if (!response.headersSent) serve(request, response)
    })
  })
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    // Before Node's own listener, which ends the other direction too.
    socket.prependListener('end', breakOffUndelimited)
  })
  server.on('request', serveRequest)
  // The handler sends "100 Continue" once a request is allowed, so that a refused upload is never sent.
  server.on('checkContinue', serveRequest)
  server.on('checkExpectation', serveRequest)
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, rest: Buffer) => {
    // Some versions of Node emit `upgrade` for any protocol.
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
    // The parser still gets data, and fails again.
    if (unreadable.has(socket)) return
    if (isPaused(error)) return keepUnparsed(socket, error.rawPacket)
    if (cleartextHttp2 && isPreface(error, socket)) return serveHttp2(cleartextHttp2, socket, error)
    const found = readParserError(error)
    // Browsers open spare connections: one that was not used in time is closed without a response.
    if (!found || socket.bytesRead === 0) {
      socket.destroy()
      return
    }
    // After a response that closes the connection, the rest is dropped, and neither answered nor counted.
    if (!socket.writable) return
    unreadable.add(socket)
    telemetry.requestRejected(found.rejection)
    onParserError(found)
    answerParserError(socket, found.reply)
  })
  server.on('tlsClientError', () => telemetry.connectionRefused('tls'))
}

/**
 * A half-closed client counts as disconnected. To HTTP/1.0, a response without a length would look complete at the end
 * of the connection.
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
 * Whether more than this request has been read. If an upgrade is not accepted, Node's parser drops what it has read
 * beyond the request, so that the connection has to close after the response. Clients that offer HTTP/2 with the first
 * request of a connection, and send nothing after it, keep theirs.
 */
function mayHaveLostBytes({ method = '', url = '', rawHeaders, socket }: ClientRequest): boolean {
  const fieldBytes = rawHeaders.reduce((sum, text) => sum + text.length + 2, 0)
  return socket.bytesRead !== `${method} ${url} HTTP/1.1\r\n\r\n`.length + fieldBytes
}

/**
 * Whether to accept an upgrade: WebSocket handshakes only. Any other upgrade is ignored, and the request is served as
 * usual (RFC 9110 section 7.8); an invalid handshake is answered as a request, so that its body, if any, is read as
 * one.
 */
export function takesUpgrade(request: ClientRequest): boolean {
  return isWebSocketHandshake(request) && !expectsOther(request) && hasAnsweredAll(request.socket)
}

/** A handshake takes the same steps as any request; its response is written to the bare socket that Node hands over. */
function serveUpgrade(
  { handler, tunnels, onException }: ListenerDeps,
  request: IncomingMessage,
  socket: Socket,
  rest: Buffer,
): void {
  const before = latestResponse(socket)
  // From here on the socket has no other error listener; each error is followed by `close`.
  socket.on('error', () => undefined)
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  keepDraining(socket)
  // The end of a socket is only noticed by reading from it: a client that disconnects must not keep the backend
  // waiting.
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
      // The 101 may have been sent already: no error reply is possible.
      socket.destroy()
      throw error
    }
  }
  const serve = (): void => {
    leaveHttp(socket)
    response.assignSocket(socket)
    guarded(onException, () => handler(request, response, open))(request, response)
  }
  if (!before || before.destroyed) return serve()
  // A client may have read all of the response before it, and sent this, before Node knows that it is out.
  before.once('close', () => {
    // Node begins its keep-alive timeout now. If that response closes the connection, nothing follows it.
    socket.setTimeout(0)
    if (socket.writable) serve()
  })
}
