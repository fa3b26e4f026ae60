import type { ServerResponse } from 'node:http'
import type { ErrorReply } from '../shared/error-replies.ts'

/** Sends a JSON response. Caches must not store it, because it depends on the key and on the time. */
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
