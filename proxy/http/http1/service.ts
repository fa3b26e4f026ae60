import type { Socket } from 'node:net'
import type { Http1Request } from './request.ts'
import type { Http1Response } from './response.ts'
import type { HeadLimits } from './parser/head-size.ts'
import type { RequestSyntaxError } from './parser/syntax-error.ts'

/** The interface of a connection for the handler of its requests. */
export type ServedConnection = {
  readonly socket: Socket
  /** Answers malformed input without a request object, and ends the connection. */
  rejectInput(
    reply: { readonly status: number; readonly reason: string; readonly body: Buffer },
    fields: readonly string[],
  ): void
  /** Closes the connection after the written bytes, and reads on for a moment, so that they arrive. */
  closeSoon(): void
  /** Detaches the socket, paused and without listeners. Returns the bytes received after the request in flight. */
  becomeTunnel(): Buffer
}

/** Options shared by all connections of a listener. */
export type Http1Service = {
  /** Limits of a head; the same limits apply to trailers separately. */
  readonly headLimits: HeadLimits
  /** Header lines of a response whose connection is kept. */
  readonly keepAliveLine: string
  /** Connections close after their responses, because the gateway stops. */
  readonly isStopping: boolean
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Serves a request. */
  onRequest(connection: ServedConnection, request: Http1Request, response: Http1Response): void
  /** The client's bytes are not a request, or do not arrive in time. @param exchange the request whose body they belong to */
  onFault(
    connection: ServedConnection,
    fault: RequestSyntaxError | 'late',
    exchange: Http1Exchange | undefined,
  ): void
  /** The client speaks HTTP/2 without TLS. Undefined if HTTP/2 is not served. @param bytes received so far */
  readonly onPreface: ((socket: Socket, bytes: Buffer) => void) | undefined
  /** An exception other than a `RequestSyntaxError`, which is a bug. */
  onException(error: unknown, exchange: Http1Exchange | undefined): void
}

/** A request on a connection, and its response. */
export type Http1Exchange = { readonly request: Http1Request; readonly response: Http1Response }
