import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ErrorReply } from '../shared/errors.ts'

/** A request as the steps see it, and the response to it. HTTP/2 ones have the same shape through Node's own adapter. */
export type ClientRequest = IncomingMessage
export type ClientResponse = ServerResponse

/** A request body of up to this size is read to its end and dropped, so that the connection can be kept. */
const maxDrainedBytes = 64 * 1024
/** How long, after an answer that ends the connection, the client's bytes are still taken and dropped. */
const lingerMs = 2_000

/**
 * Answers a request by ourselves, in the one error shape. Does nothing where a response has begun already.
 *
 * @param fields name, value, name, value… to add
 */
export function sendError(
  request: ClientRequest,
  response: ClientResponse,
  reply: ErrorReply,
  fields: readonly string[] = [],
): void {
  if (response.headersSent) return
  endAfterResponse(request, response)
  response.writeHead(reply.status, [
    'content-type',
    'application/json',
    'content-length',
    String(reply.body.length),
    ...fields,
  ])
  response.end(request.method === 'HEAD' ? undefined : reply.body)
}

/**
 * To be called before the head of a response that is given while the request's body may still be on its way. A short
 * body is read and dropped. For a long one the connection ends with the response, but not at once: closing a socket that
 * holds unread bytes resets it, and the client could lose the response (RFC 9112 section 9.6).
 */
export function endAfterResponse(request: ClientRequest, response: ClientResponse): void {
  if (request.complete || request.httpVersionMajor > 1 || drainsCheaply(request)) return
  const { socket } = request
  response.shouldKeepAlive = false
  // What Node calls after the last response of a connection. It would close the socket for both directions.
  socket.destroySoon = () => {
    request.resume()
    socket.end()
    const timer = setTimeout(() => socket.destroy(), lingerMs)
    socket.once('close', () => clearTimeout(timer))
  }
}

function drainsCheaply(request: ClientRequest): boolean {
  if (request.headers['transfer-encoding'] !== undefined || request.headers.expect !== undefined) return false
  return Number(request.headers['content-length'] ?? 0) <= maxDrainedBytes
}

/** Ends a response that cannot be completed in a way that no client can take for its end. */
export function breakOff(response: ClientResponse): void {
  const { socket } = response
  // A reset, because to a client of HTTP/1.0 an orderly close would say that the body is complete.
  if (socket && !socket.destroyed && 'resetAndDestroy' in socket) socket.resetAndDestroy()
  else response.destroy()
}
