/** Glitches that a connection may cause at once, and further ones each second. */
const BURST = 1000
const PER_SECOND = 100

/**
 * Counts frames that no request needs in large numbers, and that cost a client less than the server (HAProxy calls them glitches). A client
 * that floods the server with them loses its connection (CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2025-8671).
 */
export class Glitches {
  readonly #now: () => number
  #left = BURST
  #sinceMs: number

  /** @param now monotonic milliseconds */
  constructor(now: () => number) {
    this.#now = now
    this.#sinceMs = now()
  }

  /** Returns whether the connection is still within bounds. */
  add(weight: number): boolean {
    this.#left -= weight
    if (this.#left >= 0) return true
    const nowMs = this.#now()
    this.#left = Math.min(BURST, this.#left + ((nowMs - this.#sinceMs) / 1000) * PER_SECOND)
    this.#sinceMs = nowMs
    return this.#left >= 0
  }

  /** Allows as many at once as on a new connection. */
  renew(): void {
    this.#left = BURST
    this.#sinceMs = this.#now()
  }
}
