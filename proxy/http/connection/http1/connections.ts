import type { Socket } from 'node:net'
import { afterInput } from '../../../../shared/after-input.ts'
import { Http1Connection } from '../../http1/connection.ts'
import type { HeadLimits } from '../../http1/parser/head-size.ts'
import type { Http1Service } from '../../http1/service.ts'

export type Http1Limits = {
  /** Of a head, and again of trailers. */
  readonly headLimits: HeadLimits
  /** Time that a connection is kept between two requests. */
  readonly idleMs: number
  /** Time in which a request's head must be there once it has begun, the first one since the connection was opened. */
  readonly headersMs: number
}

/** Handlers for requests, and for input that is not a request. */
export type Http1Handlers = Pick<Http1Service, 'onRequest' | 'onFault' | 'onPreface' | 'onException'>

/** The HTTP/1 connections of one listener. */
export type Http1Connections = {
  /** Serves a connection. */
  serve(socket: Socket): void
  /**
   * From now on every response tells its client that the connection closes (RFC 9112 section 9.6), also those to requests in
   * flight, unless the response has begun. Requests that have arrived completely are still served.
   */
  endAfterResponses(): void
  /** Those on which no request is in flight, not even a part of its head, and every response has been sent. */
  betweenRequests(): Http1Connection[]
  close(): void
}

/** Clients may go by what the response says: theirs is not to be the connection that closes under a request. */
const graceMs = 1_000
const maxSweepMs = 500
/** To end a connection takes time, over TLS a tenth of a millisecond, and many may be overdue at the same sweep. */
const maxEndedPerTurn = 8

/**
 * Closes connections that are idle for too long, or on which the head of a request arrives too slowly. One sweep looks at all
 * connections, so that no request needs a timer. Empty lines before a request have to be ignored (RFC 9112 section 2.2): they keep
 * no connection open.
 *
 * @param now monotonic milliseconds
 */
export function createHttp1Connections(
  { headLimits, idleMs, headersMs }: Http1Limits,
  handlers: Http1Handlers,
  now: () => number,
): Http1Connections {
  const open = new Set<Http1Connection>()
  let isStopping = false
  const service: Http1Service = {
    ...handlers,
    headLimits,
    keepAliveLine: `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(idleMs / 1000)}\r\n`,
    get isStopping() {
      return isStopping
    },
    now,
  }

  /** The overdue part of a connection: the head of a request that has begun, or another request. */
  const overdueOn = (connection: Http1Connection, nowMs: number): 'head' | 'request' | undefined => {
    const { headSinceMs, idleSinceMs } = connection
    if (headSinceMs !== undefined) return nowMs - headSinceMs >= headersMs ? 'head' : undefined
    if (idleSinceMs === undefined || !connection.isOpen) return undefined
    return nowMs - idleSinceMs >= idleMs + graceMs ? 'request' : undefined
  }
  let isEnding = false
  /** Ends some in each turn of the event loop, so that others are served in between. */
  const endInTurns = (connections: Http1Connection[]): void => {
    isEnding = false
    const nowMs = now()
    for (const connection of connections.splice(0, maxEndedPerTurn)) {
      // Bytes buffered until the end of the turn arrived in time.
      connection.readKept()
      const overdue = overdueOn(connection, nowMs)
      if (overdue === 'head') connection.timeOut()
      else if (overdue === 'request') connection.socket.destroy()
    }
    if (connections.length === 0) return
    isEnding = true
    setImmediate(endInTurns, connections)
  }
  const endOverdue = (): void => {
    if (isEnding) return
    const nowMs = now()
    endInTurns(Array.from(open).filter((connection) => overdueOn(connection, nowMs) !== undefined))
  }
  const sweep = setInterval(() => afterInput(endOverdue), Math.min(maxSweepMs, headersMs / 4, idleMs / 4))
  sweep.unref()

  return {
    serve(socket) {
      const connection = new Http1Connection(socket, service)
      open.add(connection)
      socket.once('close', () => open.delete(connection))
    },
    endAfterResponses() {
      // Bytes buffered until the end of the turn have arrived too.
      for (const connection of open) connection.readKept()
      isStopping = true
      for (const connection of open) connection.stop()
    },
    betweenRequests: () => Array.from(open).filter((connection) => connection.isBetweenRequests),
    close: () => clearInterval(sweep),
  }
}
