import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { errors, type ErrorReply } from '../shared/error-replies.ts'

/** Answers with a JSON body. Whatever the origin says is about a key or about this moment: no cache may keep it. */
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

/** Answers in the one shape of errors. Where a response has begun already, it is broken off instead. */
export function sendError(
  response: ServerResponse,
  reply: ErrorReply,
  fields?: Record<string, string>,
): void {
  if (response.headersSent) response.destroy()
  else sendJson(response, reply.status, reply.body, fields)
}

/** How long a client has to take an answer to what could not be read, and to close. */
const lingerMs = 1_000

/** Answers, on the bare socket, what could not be read as a request, and closes: what follows cannot be trusted. */
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
