/** A backend that says nothing of how long it keeps an idle connection is assumed to keep it this long. */
const assumedKeepAliveMs = 4_000
const longestKeepAliveMs = 60_000
/** Stop using a connection this much before the backend closes it. */
const keepAliveMarginMs = 1_000

/** Limits how long a connection is reused: only new connections look up the backend's address again. */
export class ConnectionLife {
  readonly #maxRequests: number
  readonly #retireAtMs: number
  #served = 0
  #keepAliveMs = assumedKeepAliveMs

  /**
   * @param maxRequests that it may serve; 0 is no limit
   * @param retireAtMs when it is to serve no further one, on the clock of `endExchange`
   */
  constructor(maxRequests: number, retireAtMs: number) {
    this.#maxRequests = maxRequests
    this.#retireAtMs = retireAtMs
  }

  /** It has served an exchange: the backend may close the connection just as the next begins. */
  get isReused(): boolean {
    return this.#served > 0
  }

  /** The backend has said how long it keeps the connection open while it is idle. */
  noteKeepAlive(durationMs: number): void {
    this.#keepAliveMs = Math.min(durationMs, longestKeepAliveMs)
  }

  /**
   * Counts an exchange.
   *
   * @returns until when the connection may wait for the next; undefined if it is to serve no further one
   */
  endExchange(nowMs: number): number | undefined {
    this.#served++
    const isOver = this.#served === this.#maxRequests || nowMs >= this.#retireAtMs
    if (isOver || this.#keepAliveMs <= keepAliveMarginMs) return undefined
    return Math.min(nowMs + this.#keepAliveMs - keepAliveMarginMs, this.#retireAtMs)
  }
}
