/** How long a backend is assumed to keep an idle connection open if it does not announce it. */
const ASSUMED_KEEP_ALIVE_MS = 4_000
const MAX_KEEP_ALIVE_MS = 60_000
/** Stop using a connection this long before the backend closes it. */
const KEEP_ALIVE_MARGIN_MS = 1_000
/** A backend may close a connection that has waited this long for its first request. */
const LONG_WAIT_MS = 100

/** Limits how long a connection is reused, because only new connections look up the backend's address again. */
export class ConnectionLife {
  readonly #maxRequests: number
  readonly #retireAtMs: number
  #served = 0
  #waitsSinceMs: number | undefined
  #hasWaited = false
  #keepAliveMs = ASSUMED_KEEP_ALIVE_MS

  /**
   * @param maxRequests how many requests the connection may serve; 0 means no limit
   * @param retireAtMs when the connection stops serving requests, on the clock of `endExchange`
   */
  constructor(maxRequests: number, retireAtMs: number) {
    this.#maxRequests = maxRequests
    this.#retireAtMs = retireAtMs
  }

  /** Whether the connection has served an exchange, or waited long for its first. The backend may then close it just as the next begins. */
  get isReused(): boolean {
    return this.#served > 0 || this.#hasWaited
  }

  beginExchange(now: () => number): void {
    if (this.#served === 0 && this.#waitsSinceMs !== undefined)
      this.#hasWaited = now() - this.#waitsSinceMs >= LONG_WAIT_MS
  }

  /**
   * The exchange that the connection was opened for was cancelled before it began.
   *
   * @returns the same as `endExchange`
   */
  beginWaiting(nowMs: number): number | undefined {
    this.#waitsSinceMs = nowMs
    return this.#idleUntil(nowMs)
  }

  /** The backend has said how long it keeps the connection open while it is idle. */
  setAnnouncedKeepAlive(durationMs: number): void {
    this.#keepAliveMs = Math.min(durationMs, MAX_KEEP_ALIVE_MS)
  }

  /**
   * Counts an exchange.
   *
   * @returns until when the connection may wait for the next exchange; undefined if it may not serve another one
   */
  endExchange(nowMs: number): number | undefined {
    this.#served++
    return this.#idleUntil(nowMs)
  }

  #idleUntil(nowMs: number): number | undefined {
    const isRetired = (this.#served > 0 && this.#served === this.#maxRequests) || nowMs >= this.#retireAtMs
    if (isRetired || this.#keepAliveMs <= KEEP_ALIVE_MARGIN_MS) return undefined
    return Math.min(nowMs + this.#keepAliveMs - KEEP_ALIVE_MARGIN_MS, this.#retireAtMs)
  }
}
