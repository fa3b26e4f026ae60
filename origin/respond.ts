import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { errors, type ErrorReply } from '../shared/error-replies.ts'

/** Sends a JSON response, which caches must not store, as it depends on the key and on the time. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: Buffer,
  fields: Record<string, string> = {},
): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': body.length,
    'cache-control': 'no-store',
    ...fields,
  })
  response.end(body)
}

/** Sends an error response. If a response has begun already, closes the connection instead. */
export function sendError(
  response: ServerResponse,
  reply: ErrorReply,
  fields?: Record<string, string>,
): void {
  if (response.headersSent) response.destroy()
  else sendJson(response, reply.status, reply.body, fields)
}

/** Time for the client to read the error response and to close the connection. */
const lingerMs = 1_000

/** Sends an error response for a request that the parser could not read, and closes the connection. */
export function answerParserError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const reply = replyTo(error)
  socket.end(
    `HTTP/1.1 ${reply.status} ${reply.reason}\r\ncontent-type: application/json\r\n` +
      `content-length: ${reply.body.length}\r\nconnection: close\r\n\r\n${reply.body.toString()}`,
  )
  setTimeout(() => socket.destroy(), lingerMs).unref()
}

function replyTo({ code }: NodeJS.ErrnoException): ErrorReply {
  if (code === 'HPE_HEADER_OVERFLOW') return errors.fieldsTooLarge
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return errors.requestTimeout
  return errors.badRequest
}
