import type { IncomingHttpHeaders } from 'node:http'

/**
 * Whether the status code of a response says how the request has ended. For a batch of calls it may not: 207 (Multi-Status) has a status for
 * each call in its body, and tRPC answers 200 before any call has run if the client asks for a stream of lines. Calls over gRPC and gRPC-Web
 * are always answered 200; services of Connect also take them under the path of a call in JSON, which would be answered 401.
 *
 * @param headers those of the request
 */
export function tellsOutcome(status: number, headers: IncomingHttpHeaders): boolean {
  const { accept = '', 'content-type': type = '' } = headers
  return (
    status !== 207 && headers['trpc-accept'] === undefined && !asksForLines.test(accept) && !isGrpc.test(type)
  )
}

const asksForLines = /application\/jsonl/i
const isGrpc = /^application\/grpc/i
