import type { Socket } from 'node:net'
import { Http1Connection } from '../../http1/connection.ts'
import type { HeadLimits } from '../../http1/parser/head-size.ts'
import type { Http1Service } from '../../http1/service.ts'
import { OverdueConnections, type OverdueTimes } from './overdue-connections.ts'

export type Http1Limits = OverdueTimes & {
  /** Limits of a head; the same limits apply to trailers separately. */
  readonly headLimits: HeadLimits
}

/** Handlers for requests, and for input that is not a request. */
export type Http1Handlers = Pick<Http1Service, 'onRequest' | 'onFault' | 'onPreface' | 'onException'>

/** The HTTP/1 connections of one listener. */
export type Http1Connections = {
  /** Serves a connection. */
  serve(socket: Socket): void
  /**
   * Makes every further response tell its client that the connection closes (RFC 9112 section 9.6), including those to requests in
   * flight, unless the response has begun. Requests that have arrived completely are still served.
   */
  closeAfterResponses(): void
  /** Connections whose requests have all been answered, and that have received no byte of another one. */
  betweenRequests(): Http1Connection[]
  close(): void
}

/** @param now monotonic milliseconds */
export function createHttp1Connections(
  { headLimits, ...times }: Http1Limits,
  handlers: Http1Handlers,
  now: () => number,
): Http1Connections {
  const open = new Set<Http1Connection>()
  let isStopping = false
  const service: Http1Service = {
    ...handlers,
    headLimits,
    keepAliveLine: `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(times.idleMs / 1000)}\r\n`,
    get isStopping() {
      return isStopping
    },
    now,
  }

  const overdue = new OverdueConnections(open, times, now)

  return {
    serve(socket) {
      const connection = new Http1Connection(socket, service)
      open.add(connection)
      socket.once('close', () => open.delete(connection))
    },
    closeAfterResponses() {
      // Bytes buffered until the end of the turn have arrived too.
      for (const connection of open) connection.readBuffered()
      isStopping = true
      for (const connection of open) connection.stop()
    },
    betweenRequests: () => Array.from(open).filter((connection) => connection.isBetweenRequests),
    close: () => overdue.close(),
  }
}
