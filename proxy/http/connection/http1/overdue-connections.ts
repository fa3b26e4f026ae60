import { afterInput } from '../../../../shared/after-input.ts'
import type { Http1Connection } from '../../http1/connection.ts'

export type OverdueTimes = {
  /** How long a connection stays open between two requests. */
  readonly idleMs: number
  /** Time in which a head must arrive, measured from its first byte; for the first request, from the opening of the connection. */
  readonly headersMs: number
}

/** Clients rely on the `Keep-Alive` header. A connection stays open this much longer, so that it does not close while a request arrives. */
const GRACE_MS = 1_000
const MAX_SWEEP_MS = 500
/** Connections closed per turn of the event loop: closing one takes a tenth of a millisecond over TLS, and a sweep may find many. */
const MAX_ENDED_PER_TURN = 8

/**
 * Closes connections that are idle for too long, or on which the head of a request arrives too slowly. One sweep looks at all connections,
 * so that no request needs a timer. Empty lines before a request must be ignored (RFC 9112 section 2.2), and do not keep a connection open.
 */
export class OverdueConnections {
  readonly #open: ReadonlySet<Http1Connection>
  readonly #times: OverdueTimes
  readonly #now: () => number
  readonly #sweep: NodeJS.Timeout
  /** Whether overdue connections are left to be closed in later turns. */
  #isEnding = false

  /** @param now monotonic milliseconds */
  constructor(open: ReadonlySet<Http1Connection>, times: OverdueTimes, now: () => number) {
    const { headersMs, idleMs } = times
    this.#open = open
    this.#times = times
    this.#now = now
    const sweepMs = Math.min(MAX_SWEEP_MS, headersMs / 4, idleMs / 4)
    this.#sweep = setInterval(() => afterInput(() => this.#endOverdue()), sweepMs)
    this.#sweep.unref()
  }

  /** Stops the sweep. */
  close(): void {
    clearInterval(this.#sweep)
  }

  #endOverdue(): void {
    if (this.#isEnding) return
    const nowMs = this.#now()
    this.#endInTurns(
      Array.from(this.#open).filter((connection) => this.#overduePart(connection, nowMs) !== undefined),
    )
  }

  /** Closes a few connections in each turn of the event loop, so that others are served in between. */
  #endInTurns(connections: Http1Connection[]): void {
    this.#isEnding = false
    const nowMs = this.#now()
    for (const connection of connections.splice(0, MAX_ENDED_PER_TURN)) {
      // Bytes buffered until the end of the turn arrived in time.
      connection.readBuffered()
      const overdue = this.#overduePart(connection, nowMs)
      if (overdue === 'head') connection.timeOut()
      else if (overdue === 'request') connection.socket.destroy()
    }
    if (connections.length === 0) return
    this.#isEnding = true
    setImmediate(() => this.#endInTurns(connections))
  }

  /** Returns which part of a connection is overdue: the head of a request that has begun, or another request. */
  #overduePart(connection: Http1Connection, nowMs: number): 'head' | 'request' | undefined {
    const { headersMs, idleMs } = this.#times
    const { headSinceMs, idleSinceMs } = connection
    if (headSinceMs !== undefined) return nowMs - headSinceMs >= headersMs ? 'head' : undefined
    if (idleSinceMs === undefined || !connection.isOpen) return undefined
    return nowMs - idleSinceMs >= idleMs + GRACE_MS ? 'request' : undefined
  }
}
