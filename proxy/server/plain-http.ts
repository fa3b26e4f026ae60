import type { Socket } from 'node:net'
import { errors } from '../../shared/error-replies.ts'
import type { Fault } from '../http/connection/http1/faults.ts'
import { socketBeneath } from '../http/connection/tls/socket-beneath.ts'

/** How long the connection stays open: closing it with unread data would reset it, and the client would lose the response. */
const LINGER_MS = 2_000

/** The response to plain HTTP on the HTTPS port, as in nginx. */
export const plainHttp: Fault = {
  reply: errors.plainHttp,
  rejection: 'framing',
  reason: 'plain HTTP on the HTTPS port (TLS_CERT_FILE)',
}

/** Whether a TLS handshake failed because the client sent a request without TLS. */
export function isPlainHttp(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ERR_SSL_HTTP_REQUEST'
}

/**
 * Answers on the connection below TLS, which Node keeps open until the error listener has returned.
 *
 * @returns whether a response could be sent
 */
export function answerPlainHttp(secured: Socket): boolean {
  const socket = socketBeneath(secured)
  if (!socket || socket.destroyed) return false
  const { status, reason, body } = plainHttp.reply
  socket.on('error', () => undefined)
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n` +
      body.toString(),
  )
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
  return true
}
