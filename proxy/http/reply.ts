import type { OutgoingHttpHeaders } from 'node:http'
import { constants, type Http2ServerResponse, type ServerHttp2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { ClientResponse as OwnResponse } from '../message/client-response.ts'
import type { ErrorReply } from '../../shared/error-replies.ts'
import { declaredLength, hasContent } from './framing.ts'
import { fieldsOfFailedCall, isGrpcCall } from './grpc.ts'
import { destroyConnection, resetStream } from './http2-reset.ts'
import type { ClientRequest, ClientResponse } from './messages.ts'

/** A request body of up to this size is read and dropped, so that the connection can be reused. */
const maxDrainedBytes = 64 * 1024
/** Node encodes text of up to 16 KiB, head included, without another buffer. */
const maxEndedAsTextBytes = 8 * 1024
/** How long the client's bytes are still read and dropped after a response that closes the connection. */
const lingerMs = 2_000
/** How long the client may take to read what was written before. */
const takeMs = 60_000
/** How often to check whether the end of a response has been sent. */
const sentCheckMs = 5

/** Says what goes with each local reply to a request. */
export type LocalReplySource = {
  /** Name, value, name, value… */
  readonly localReplyFields: readonly string[]
  /** What an error is sent as, asked before its fields; undefined: as it is. */
  adaptError?(reply: LocalReply): LocalReply
}

const source = Symbol('source of fields for local replies')

const meantStatus = Symbol('status of a local reply to a call of gRPC')

type Sourced = ClientResponse & { [source]?: LocalReplySource; [meantStatus]?: number }

/** From now on what the gateway answers itself with this response has the fields of `from`, whichever step answers. */
export function addToLocalReplies(response: Sourced, from: LocalReplySource): void {
  response[source] = from
}

/** Writes the head of a local reply: the given fields, and those that go with each. */
export function writeLocalHead(response: Sourced, status: number, fields: readonly string[]): void {
  writeHead(response, status, [...fields, ...(response[source]?.localReplyFields ?? [])], true)
}

export type LocalReply = Pick<ErrorReply, 'status' | 'body'> & {
  /** For people; calls of gRPC get it instead of the body. */
  readonly text?: string
  /** Without it, JSON. */
  readonly contentType?: string
}

/**
 * Sends a local error reply, to a call of gRPC as its clients read it. Does nothing if the response has already begun.
 *
 * @param error may be sent as another one, as the source of the response's local fields has it
 * @param fields name, value, name, value… to add
 */
export function sendError(
  request: ClientRequest,
  response: Sourced,
  error: LocalReply,
  fields: readonly string[] = [],
): void {
  if (response.headersSent) return
  const reply = response[source]?.adaptError?.(error) ?? error
  endAfterResponse(request, response)
  if (isGrpcCall(request)) {
    response[meantStatus] = reply.status
    const local = response[source]?.localReplyFields ?? []
    endWithHead(response, 200, fieldsOfFailedCall(reply, [...fields, ...local]))
    return
  }
  const length = String(reply.body.length)
  writeLocalHead(response, reply.status, [
    'content-type',
    reply.contentType ?? 'application/json',
    'content-length',
    length,
    ...fields,
  ])
  if (request.method === 'HEAD') response.end()
  else endResponse(response, reply.body)
}

/** The status of a response: of an error that a call of gRPC was answered with what it would have been otherwise. */
export function statusOf(response: Sourced): number {
  return response[meantStatus] ?? response.statusCode
}

/**
 * Writes a response's head. What HTTP/2 has no use for must have been taken out of the fields.
 *
 * @param fields name, value, name, value…; a name may repeat
 * @param ends the response is ended before anything else happens, without trailers: over HTTP/2 the last piece of the body then
 *   ends the stream, without a frame and a write of its own
 */
export function writeHead(response: ClientResponse, status: number, fields: string[], ends = false): void {
  if (response instanceof OwnResponse) {
    const own: OwnResponse = response
    own.writeHead(status, fields, ends)
    return
  }
  const stream = streamOf(response)
  if (!stream) {
    response.writeHead(status, fields)
    return
  }
  if (stream.destroyed || stream.closed) return
  response.statusCode = status
  // Not by Node's adapter, which waits for trailers of every response. Where none are waited for, Node would end the stream
  // as if it were complete when it is reset behind a piece of the body.
  stream.respond(headersOf(status, fields), { waitForTrailers: !ends })
}

/** The head of a response of HTTP/2: a list where a field repeats. What repeats with its value is there once. */
function headersOf(status: number, fields: readonly string[]): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = Object.create(null) as OutgoingHttpHeaders
  headers[constants.HTTP2_HEADER_STATUS] = status
  for (let i = 0; i < fields.length; i += 2) {
    const [name = '', value = ''] = [fields[i], fields[i + 1]]
    const before = headers[name]
    if (before === undefined) headers[name] = value
    else if (Array.isArray(before)) before.push(value)
    else if (before !== value) headers[name] = [String(before), value]
  }
  return headers
}

/** Ends a response of HTTP/2 with its head. Clients of gRPC take such a head for the outcome of a call, and no other. */
export function endWithHead(response: ClientResponse, status: number, fields: readonly string[]): void {
  if (response instanceof OwnResponse) return response.endWithHead(status, fields)
  const stream = streamOf(response)
  if (!stream || stream.destroyed || stream.closed) return
  response.statusCode = status
  stream.respond(headersOf(status, fields), { endStream: true })
  response.end()
}

/**
 * Ends a response with the last piece of its body. Where that is short it is handed over as text, because Node writes a
 * head that has not gone out yet and text as one piece, a head and a buffer as two, which costs the kernel more.
 */
export function endResponse(response: ClientResponse, last: Buffer): void {
  if (response instanceof OwnResponse) {
    const own: OwnResponse = response
    own.end(last)
    return
  }
  if (last.length <= maxEndedAsTextBytes) response.end(last.toString('latin1'), 'latin1')
  else response.end(last)
}

/** Sends a response's head before there is anything of its body. */
export function flushHead(response: ClientResponse): void {
  if (response instanceof OwnResponse) return response.flushHead()
  if (streamOf(response)) response.flushHeaders()
  // Node's own way for HTTP/1 encodes the head in UTF-8, and what is beyond ASCII in it was read as single bytes.
  else response.write('', 'latin1')
}

/**
 * To be called before the head of a response that is given while the request's body may still be on its way. A short
 * body is read and dropped. For a long one, or where the client has asked for it, the connection ends with the response, but
 * not at once: closing a socket that holds unread bytes resets it, and the client could lose the response (RFC 9112 section
 * 9.6).
 */
export function endAfterResponse(request: ClientRequest, response: ClientResponse): void {
  if (response instanceof OwnResponse) return response.endAfterResponse()
  if (request.complete) return
  const stream = streamOf(response)
  if (stream) {
    // The response is complete: what is left of the body is asked not to be sent (RFC 9113 section 8.1).
    const close = (): void => closeOnceSent(stream)
    if (stream.writableFinished) close()
    else stream.once('finish', close)
    return
  }
  if (!hasContent(request) || (response.shouldKeepAlive && drainsCheaply(request))) return
  closeAfterResponse(request, response)
}

/**
 * To be called before the head of a response after which nothing that the client sent can be read as a request. Over
 * HTTP/2 there is no such response.
 */
export function closeAfterResponse(request: ClientRequest, response: ClientResponse): void {
  if (response instanceof OwnResponse) return response.closeAfterResponse()
  if (streamOf(response)) return
  const { socket } = request
  response.shouldKeepAlive = false
  // What Node calls after the last response of a connection. It would close the socket for both directions.
  socket.destroySoon = () => closeSoon(socket)
}

/**
 * Ends a connection such that what was written on it arrives, but does not wait long for the client to end it too. What
 * still comes is read, as the system would reset the connection otherwise, and dropped before it gets to the parser: what
 * this makes of it would wait for its turn, and stop the reading.
 */
function closeSoon(socket: Duplex): void {
  socket.removeAllListeners('data')
  socket.on('data', () => undefined)
  // Node's server may have stopped reading the system's socket, and no longer hears that the stream is resumed.
  socket._read(0)
  const destroy = (): void => void socket.destroy()
  let timer = setTimeout(destroy, takeMs)
  const linger = (): void => {
    clearTimeout(timer)
    timer = setTimeout(destroy, lingerMs)
  }
  socket.once('close', () => clearTimeout(timer))
  socket.resume()
  socket.end()
  if (socket.writableFinished) linger()
  else socket.once('finish', linger)
}

function drainsCheaply(request: ClientRequest): boolean {
  if (request.headers['transfer-encoding'] !== undefined || request.headers.expect !== undefined) return false
  return (declaredLength(request) ?? 0) <= maxDrainedBytes
}

/**
 * Resets a stream without error behind the end of its response. `finish` comes before that end has gone out, of which
 * there is no event; a reset that is sent then takes the place of the end, and some versions of Node drop a head that waits.
 */
function closeOnceSent(stream: ServerHttp2Stream): void {
  if (stream.destroyed || stream.closed) return
  if (stream.state.localClose === 1) stream.close(constants.NGHTTP2_NO_ERROR)
  else setTimeout(() => closeOnceSent(stream), sentCheckMs)
}

/** Sends 103 Early Hints (RFC 8297), which Node can do from version 26 on. */
export function writeEarlyHints(response: ClientResponse, links: readonly string[]): void {
  if (response instanceof OwnResponse) return response.writeEarlyHints(links)
  if (links.length > 0 && mayInform(response) && 'writeInformation' in response)
    response.writeInformation(103, { link: links.join(', ') })
}

/**
 * Ends a response early, after what has been written. The client can tell that it is incomplete: over HTTP/1.1 by the
 * missing bytes or last chunk, over HTTP/2 by the reset.
 */
export function cutShort(response: ClientResponse): void {
  if (response instanceof OwnResponse) return response.cutShort()
  const stream = streamOf(response)
  const { socket } = response
  if (stream) resetOnceSent(stream)
  else if (socket && !socket.destroyed)
    // Node may hold chunks back until this turn is over, to write them together.
    setImmediate(() => closeSoon(socket))
  else response.destroy()
}

function resetOnceSent(stream: ServerHttp2Stream): void {
  if (stream.destroyed || stream.closed) return
  if (stream.writableLength === 0) resetStream(stream, constants.NGHTTP2_INTERNAL_ERROR)
  else setTimeout(() => resetOnceSent(stream), sentCheckMs)
}

/** Tells the client to send the content that it holds back (RFC 9110 section 10.1.1). */
export function writeContinue(response: ClientResponse): void {
  if (response instanceof OwnResponse) return response.writeContinue()
  if (mayInform(response)) response.writeContinue()
}

/** Not behind the response, and not on a stream that the client has just reset, on which Node throws. */
function mayInform(response: ClientResponse): boolean {
  const stream = streamOf(response)
  return !response.headersSent && !stream?.closed && !stream?.destroyed
}

/**
 * Calls back once when a response is finished or aborted. For a HEAD over HTTP/2, Node's adapter emits `close` only if
 * the response has been ended before.
 */
export function onceOver(response: ClientResponse, callback: () => void): void {
  const stream = streamOf(response)
  if (stream) stream.once('close', callback)
  else response.once('close', callback)
}

/** Aborts a response that cannot be completed, so that no client can take it for complete. */
export function breakOff(response: ClientResponse): void {
  if (response instanceof OwnResponse) return response.breakOff()
  const stream = streamOf(response)
  const { socket } = response
  if (stream?.closed) stream.destroy()
  else if (stream) resetStream(stream, constants.NGHTTP2_INTERNAL_ERROR)
  // A reset, because to a client of HTTP/1.0 an orderly close would say that the body is complete. TLS says so by an
  // alert, which `destroy` does not send (RFC 9112 section 9.8).
  else if (socket && !socket.destroyed && !(socket instanceof TLSSocket)) socket.resetAndDestroy()
  else response.destroy()
}

/** Closes the connection of a response, with all other responses on it. */
export function breakOffConnection(response: ClientResponse): void {
  if (response instanceof OwnResponse) return response.breakOffConnection()
  const stream = streamOf(response)
  if (stream) destroyConnection(stream)
  else breakOff(response)
}

/** The stream of HTTP/2 that a response goes out on. What it calls its socket must not be touched: others use it too. */
function streamOf(response: ClientResponse | Http2ServerResponse): ServerHttp2Stream | undefined {
  return 'stream' in response ? response.stream : undefined
}
