import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { errors, type ErrorReply } from './error-replies.ts'

/** Time for the client to read the error response and to close the connection. */
const LINGER_MS = 1_000

/**
 * Gives the errors that Node's server answers by itself the same format as all other errors. By default, the server answers a request that
 * it cannot parse and an unknown `Expect` without a body, and closes the connection of a CONNECT without any response. The server needs
 * `requireHostHeader: false`; its handler checks `namesOneHost`.
 *
 * @param allow the value of `Allow` in the response to CONNECT
 */
export function answerNodeErrors(server: Server, allow: string): void {
  server.on('checkExpectation', (_request, response: ServerResponse) => {
    const { status, body } = errors.expectationFailed
    const fields = { 'content-type': 'application/json', 'content-length': body.length }
    response.writeHead(status, { ...fields, 'cache-control': 'no-store' }).end(body)
  })
  const isResponding = watchResponses(server)
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (isResponding(socket)) socket.destroy()
    else endWith(socket, replyTo(error))
  })
  server.on('connect', (_request, socket) => {
    // Node has removed its own listener.
    socket.on('error', () => undefined)
    if (isResponding(socket)) socket.destroy()
    else endWith(socket, errors.methodNotAllowed, `allow: ${allow}\r\n`)
  })
}

/**
 * @returns a function that returns whether a response has begun on a connection and not ended. The bytes of an error reply would then
 *   become part of its content.
 */
function watchResponses(server: Server): (socket: Duplex) => boolean {
  const pending = new WeakMap<Duplex, Set<ServerResponse>>()
  server.on('request', ({ socket }, response: ServerResponse) => {
    const responses = pending.get(socket) ?? new Set()
    pending.set(socket, responses.add(response))
    response.once('close', () => responses.delete(response))
  })
  return (socket) => {
    for (const { headersSent, writableEnded } of pending.get(socket) ?? [])
      if (headersSent && !writableEnded) return true
    return false
  }
}

/** Whether a request has exactly one `Host`, as RFC 9112 section 3.2 requires. Only HTTP/1.0 may leave it out. */
export function namesOneHost({ headersDistinct, httpVersion }: IncomingMessage): boolean {
  const hosts = headersDistinct['host']?.length ?? 0
  return hosts === 1 || (hosts === 0 && httpVersion === '1.0')
}

function endWith(socket: Duplex, { status, reason, body }: ErrorReply, fields = ''): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\ncontent-type: application/json\r\n` +
      `content-length: ${body.length}\r\n${fields}connection: close\r\n\r\n${body.toString()}`,
  )
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}

function replyTo({ code }: NodeJS.ErrnoException): ErrorReply {
  if (code === 'HPE_HEADER_OVERFLOW') return errors.fieldsTooLarge
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return errors.requestTimeout
  return errors.badRequest
}
