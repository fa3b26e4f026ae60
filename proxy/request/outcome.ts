import type { ClientRequest } from '../http/message/client-request.ts'

/** The parts of a request that decide what the status of its response means. */
export type OutcomeSource = Pick<ClientRequest, 'method' | 'headers'>

/**
 * Whether the status code of a response says how the request has ended. For a batch of calls it may not: 207 (Multi-Status) has a status
 * for each call in its body, and tRPC answers 200 before any call has run if the client asks for a stream of lines. Calls over gRPC and
 * gRPC-Web are always answered 200; services of Connect also take them under the path of a call in JSON, which would be answered 401.
 */
export function tellsOutcome(status: number, { method, headers }: OutcomeSource): boolean {
  const { accept = '', 'content-type': type = '' } = headers
  return (
    status !== 207 &&
    headers['trpc-accept'] === undefined &&
    !asksForLines.test(accept) &&
    !isGrpc.test(type) &&
    !hidesOutcome(status, method)
  )
}

/**
 * Whether a response is a 304 to a method that has none (RFC 9110 section 13.1.2 demands 412). Next.js (`pages/api`) and @fastify/etag
 * compare `If-None-Match` with the tag of any body, so that a client that knows the one of a 401 gets 304 in its place.
 */
export function hidesOutcome(status: number, method: string): boolean {
  return status === 304 && !readMethods.has(method)
}

/** The methods for which a response can be 304. */
const readMethods = new Set(['GET', 'HEAD', 'QUERY'])

const asksForLines = /application\/jsonl/i
const isGrpc = /^application\/grpc/i
