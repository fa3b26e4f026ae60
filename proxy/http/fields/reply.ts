import type { ErrorReply } from '../../../shared/error-replies.ts'
import { fieldsOfFailedCall } from './grpc.ts'
import type { ClientRequest } from '../message/client-request.ts'
import type { ClientResponse } from '../message/client-response.ts'

/** Provides the headers to add to each local reply to a request. */
export type LocalReplySource = {
  /** Name, value, name, value… */
  readonly localReplyFields: readonly string[]
  /** Adapts an error reply before its fields are added. Without it, errors are sent as they are. */
  adaptError?(reply: LocalReply): LocalReply
}

const source = Symbol('source of fields for local replies')

const loggedStatus = Symbol('status of a local reply to a call of gRPC')

type Sourced = ClientResponse & { [source]?: LocalReplySource; [loggedStatus]?: number }

/** Adds the fields of `from` to each local reply on this response, no matter which step sends it. */
export function addToLocalReplies(response: Sourced, from: LocalReplySource): void {
  response[source] = from
}

/** Writes the head of a local reply: the given fields, and those of its `LocalReplySource`. */
export function writeLocalHead(response: Sourced, status: number, fields: readonly string[]): void {
  response.writeHead(status, [...fields, ...(response[source]?.localReplyFields ?? [])])
  dropBody(response)
}

/**
 * Drops the body of a request that is answered here. Over HTTP/2 it would otherwise stay in memory for as long as the client does not read
 * the response. Over HTTP/1 the connection drops it after the response.
 */
function dropBody({ req }: ClientResponse): void {
  if (req.httpVersionMajor > 1) req.resume()
}

export type LocalReply = Pick<ErrorReply, 'status' | 'body'> & {
  /** The message for people, which gRPC calls get in place of the body. */
  readonly text?: string
  /** Defaults to JSON. */
  readonly contentType?: string
}

/**
 * Sends a local error reply. A gRPC call receives it in the form that gRPC clients read. Does nothing if the response has already begun.
 *
 * @param error may be replaced by the `adaptError` of the response's `LocalReplySource`
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
  response.closeIfBodyUnread()
  if (isGrpcCall(request)) {
    response[loggedStatus] = reply.status
    const local = response[source]?.localReplyFields ?? []
    response.writeHead(200, fieldsOfFailedCall(reply, [...fields, ...local]))
    response.end()
    dropBody(response)
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
  response.end(request.method === 'HEAD' ? undefined : reply.body)
}

/**
 * The status of a response, for metrics and logs. An error sent to a gRPC call has status 200 on the wire; this function returns the status
 * that any other request would have got.
 */
export function statusOf(response: Sourced): number {
  return response[loggedStatus] ?? response.statusCode
}

// A gRPC call is an HTTP/2 request whose outcome is in `grpc-status`. Its clients look at the HTTP status only if `grpc-status` is missing,
// and then take a 429 for an unavailable server.

const callType = /^application\/grpc(?:[+;\t ]|$)/i

/**
 * Whether a request is a gRPC call. gRPC-Web, which browsers use, is not: it is answered like any other request. Only a POST is a call: if
 * a GET of this type were answered with an error of status 200, a cache in front could keep it and serve it to everybody.
 */
export function isGrpcCall({ httpVersionMajor, method, headers }: ClientRequest): boolean {
  return httpVersionMajor === 2 && method === 'POST' && callType.test(headers['content-type'] ?? '')
}
