import { idleSince, type Connection } from './connection.ts'
import { requestsBeforeNext } from './pending-responses.ts'

export type IdleLimits = {
  /** Time that a connection is kept between two requests. */
  readonly idleMs: number
  /** Time in which a request's head must be there once it has begun. */
  readonly headersMs: number
}

const sweepMs = 1_000
/** Node keeps connections for a second longer than it is told to, and looks for late heads now and then. */
const graceMs = 2_000

/**
 * Closes HTTP/1.1 connections that are idle for too long although they receive bytes. Node's own timeout restarts with
 * every byte, and empty lines before a request have to be ignored (RFC 9112 section 2.2): with one now and then a
 * client could keep a connection open for ever. A request that has begun within the idle time has until the end of the
 * headers timeout to arrive.
 *
 * One sweep looks at all connections, so that no request needs a timer.
 *
 * @param now monotonic milliseconds
 */
export function endIdleConnections(
  connections: Iterable<Connection>,
  { idleMs, headersMs }: IdleLimits,
  now: () => number,
): void {
  const keptMs = idleMs + headersMs + graceMs
  const look = (connection: Connection, nowMs: number): void => {
    // Other timeouts hold before the first request, and for HTTP/2.
    if (requestsBeforeNext(connection.secured ?? connection.socket) === undefined) return
    const sinceMs = idleSince(connection)
    if (sinceMs !== undefined && nowMs - sinceMs > keptMs) connection.socket.destroy()
  }
  const sweep = setInterval(
    () => {
      const nowMs = now()
      for (const connection of connections) look(connection, nowMs)
    },
    Math.min(sweepMs, idleMs / 4),
  )
  sweep.unref()
}
