import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import type { ClientResponse } from '../http/message/client-response.ts'
import { writeLocalHead } from '../http/fields/reply.ts'

/** The `Allow` header, with the usual methods. Other methods of Node's parser are forwarded, too, except TRACE and CONNECT. */
export const allow: readonly string[] = ['allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS']

/** The fields that RFC 6455 section 4.4 requires in the reply to an unsupported WebSocket version. */
const otherVersion = ['connection', 'upgrade, close', 'upgrade', 'websocket', 'sec-websocket-version', '13']

/** Returns the additional fields of an error: name, value, name, value… */
export function fieldsOf(reply: ErrorReply): readonly string[] {
  if (reply === errors.methodNotAllowed) return allow
  return reply === errors.upgradeRequired ? otherVersion : []
}

/** Answers a successful OPTIONS. */
export function answerOptions(response: ClientResponse): void {
  response.closeIfBodyUnread()
  writeLocalHead(response, 204, allow)
  response.end()
}

/** Returns the `Max-Forwards` to forward with OPTIONS; undefined if the header is missing, and for other methods. */
export function remainingForwards({ method, headers }: ClientRequest): number | undefined {
  const maxForwards = headers['max-forwards']
  return method === 'OPTIONS' && maxForwards !== undefined ? Number(maxForwards) - 1 : undefined
}
