/** Stop using a connection this long before the backend is expected to close it, or half the limit before if that is less. */
const MARGIN_MS = 1_000
/** The learned limit is dropped if a connection stays open for this many times the limit. */
const TIMES_DISPROVED = 1.5
/** The connection must also stay open for this much longer than the limit. */
const MIN_DISPROVED_MS = 250

/**
 * How long a backend keeps idle connections open, learned from those that it closed. Most backends do not announce it, and a request that
 * is sent just as the backend closes its connection fails, unless it may be sent again (RFC 9112 section 9.6).
 *
 * A restart closes connections of any age. Therefore a limit is dropped when a connection outlives it.
 */
export class IdleLimit {
  #limitMs: number | undefined

  /** Whether the backend was seen to close idle connections. */
  get isKnown(): boolean {
    return this.#limitMs !== undefined
  }

  /** The backend has closed a connection that was idle for this long. */
  recordClosed(idleMs: number): void {
    this.#limitMs = Math.min(this.#limitMs ?? idleMs, idleMs)
  }

  /** A connection is open that has been idle for this long. */
  recordOpen(idleMs: number): void {
    const limitMs = this.#limitMs ?? Number.POSITIVE_INFINITY
    if (idleMs > limitMs * TIMES_DISPROVED + MIN_DISPROVED_MS) this.#limitMs = undefined
  }

  /** Whether a connection that has been idle for this long may serve a request. */
  allows(idleMs: number): boolean {
    const limitMs = this.#limitMs ?? Number.POSITIVE_INFINITY
    return idleMs < limitMs - Math.min(MARGIN_MS, limitMs / 2)
  }
}
