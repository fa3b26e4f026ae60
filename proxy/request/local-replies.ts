import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import type { ClientRequest, ClientResponse } from '../http/message/messages.ts'
import { writeLocalHead } from '../http/fields/reply.ts'
import type { Target } from './target/target.ts'

/** Says which methods are passed on. Others that Node.js knows are too; TRACE and CONNECT are not. */
export const allow: readonly string[] = ['allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS']

/** What RFC 6455 section 4.4 has a server say to a version of WebSocket that it does not speak. */
const otherVersion = ['connection', 'upgrade, close', 'upgrade', 'websocket', 'sec-websocket-version', '13']

/** The fields, name, value, name, value…, that go with an error beside those of all errors. */
export function fieldsOf(reply: ErrorReply): readonly string[] {
  if (reply === errors.methodNotAllowed) return allow
  return reply === errors.upgradeRequired ? otherVersion : []
}

/**
 * A reply that the gateway sends itself: an error, or `options` for a successful OPTIONS; undefined if the request is
 * to be forwarded.
 *
 * - TRACE sends back what it was sent, credentials and fields that proxies have added among it. It is never forwarded
 *   (RFC 9110 section 9.3.8).
 * - `OPTIONS *` asks about the server as a whole, and to the client that is this one (section 9.3.7). Behind a path
 *   prefix there would be nothing to forward it as.
 * - `Max-Forwards: 0` says that OPTIONS must not be forwarded further (section 7.6.2).
 */
export function localReply(
  { method, headers }: Pick<ClientRequest, 'method' | 'headers'>,
  { path }: Target,
): ErrorReply | 'options' | undefined {
  if (method === 'TRACE') return errors.methodNotAllowed
  if (method !== 'OPTIONS') return undefined
  const maxForwards = headers['max-forwards']?.toString()
  if (maxForwards !== undefined && !maxForwardsSyntax.test(maxForwards)) return errors.badRequest
  return path === '*' || Number(maxForwards) === 0 ? 'options' : undefined
}

/** Why `localReply` is an error; for the log. */
export function whyRejected(reply: ErrorReply): string {
  return reply === errors.badRequest ? 'Max-Forwards is not a number' : 'TRACE is not supported'
}

/** Answers a successful OPTIONS. */
export function answerOptions(response: ClientResponse): void {
  response.endAfterResponse()
  writeLocalHead(response, 204, allow)
  response.end()
}

/** The `Max-Forwards` to forward with OPTIONS; undefined if the header is missing, or for other methods. */
export function remainingForwards({ method, headers }: ClientRequest): number | undefined {
  const maxForwards = headers['max-forwards']
  return method === 'OPTIONS' && maxForwards !== undefined ? Number(maxForwards) - 1 : undefined
}

const maxForwardsSyntax = /^[0-9]{1,9}$/
