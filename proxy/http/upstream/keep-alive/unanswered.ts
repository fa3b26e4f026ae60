/** A new connection that the backend has not answered on yet, or that is being opened. */
export type Unanswered = {
  /** When the request of the connection began, in monotonic milliseconds. */
  readonly sinceMs: number
  /** How long to wait for an answer on it before another idle connection is closed for it. */
  patienceMs: number
  dueMs: number
}

/** The shortest time after which an idle connection is closed for one that is not answered. */
const MIN_PATIENCE_MS = 20
/** How long a new connection may wait, in multiples of the time that the backend usually takes. */
const PATIENCE = 1.25
/** The backend counts as silent if it has answered no new connection for this long, in the same multiples. */
const SILENCE = 0.25
/** The first response counts as at least this long, because it was the quickest of many requests. */
const MIN_FIRST_MS = 50
/** A single slow response counts as at most this many times the usual time. */
const MAX_TIMES_USUAL = 4
/** How long a limit is relied on before it is tested again, in multiples of the usual time. */
const LIMIT = 2
const MIN_LIMIT_MS = 100
const MAX_LIMIT_MS = 30_000
const MAX_CAUTION = 16

/**
 * New connections on which the backend has not sent a byte, in the order in which their requests began, and when to close an idle
 * connection for one of them.
 *
 * A prefork server (Apache, Puma, Starman, PHP's own) gives each connection a worker until it is closed. While all workers wait for further
 * requests on idle connections, a new connection waits in the kernel's backlog: established, but not accepted. No system call reports this
 * state. It shows when connections become free and no new connection is answered, although the oldest has waited longer than the backend
 * usually takes. The backend is then assumed to accept no more connections than it has. For each new connection that has waited for that
 * long, a connection that becomes free is closed.
 *
 * A backend that accepts all connections, and is only slow to answer, would lose its keep-alive connections this way. So the limit is
 * relied on for a short time and then tested again. Each time that it is confirmed, it is relied on for twice as long. If the backend ever
 * accepts more connections than the limit, the limit was wrong, and the next one needs twice the evidence. `docs/decisions/prefork.md` has
 * the figures.
 */
export class UnansweredConnections {
  readonly #waiting = new Set<Unanswered>()
  /** Connections for which an idle one has been closed. */
  readonly #again = new Set<Unanswered>()
  /** The earliest time at which another idle connection may be closed for one of them. */
  #againAtMs = Number.POSITIVE_INFINITY
  /** How long the backend takes for the first byte of a response on a connection that it has accepted. */
  #usualMs = 0
  /** When a connection became free, if no new one has been answered since then; in monotonic milliseconds. */
  #silentSinceMs: number | undefined
  /** How many connections the backend is assumed to accept at a time; undefined if nothing shows that there is a limit. */
  #limit: number | undefined
  #limitedUntilMs = 0
  #limitMs = 0
  /** How often the limit was confirmed. */
  #confirmed = 0
  #caution = 1

  get size(): number {
    return this.#waiting.size + this.#again.size
  }

  add(nowMs: number): Unanswered {
    const unanswered = { sinceMs: nowMs, patienceMs: 0, dueMs: 0 }
    this.#waiting.add(unanswered)
    return unanswered
  }

  delete(unanswered: Unanswered): void {
    if (!this.#waiting.delete(unanswered)) this.#again.delete(unanswered)
  }

  /** A connection is free, or was free when another one was answered. */
  recordFreeConnection(nowMs: number): void {
    this.#silentSinceMs ??= nowMs
  }

  /**
   * A new connection was answered for the first time.
   *
   * @param accepted the number of connections that the backend has accepted, this one included
   */
  recordAccepted(unanswered: Unanswered, accepted: number): void {
    this.delete(unanswered)
    this.#silentSinceMs = undefined
    if (this.#limit === undefined || accepted <= this.#limit) return
    this.#limit = undefined
    this.#limitedUntilMs = 0
    this.#limitMs = 0
    this.#confirmed = 0
    this.#caution = Math.min(this.#caution * 2, MAX_CAUTION)
  }

  /**
   * Learns how long the backend takes.
   *
   * @param unanswered of a new connection, which may have waited to be accepted; undefined for a reused one
   */
  recordResponseTime(tookMs: number, unanswered: Unanswered | undefined): void {
    if (unanswered && unanswered.sinceMs < this.#limitedUntilMs) return
    const usualMs = this.#usualMs || Math.max(tookMs, MIN_FIRST_MS)
    this.#usualMs = usualMs + (Math.min(tookMs, usualMs * MAX_TIMES_USUAL + 1) - usualMs) / 8
  }

  /**
   * Returns whether to close a free connection now for one that waits. If so, the caller must close it. Call again for the next.
   *
   * @param accepted the number of connections that the backend has accepted, the free ones included
   */
  claimClose(nowMs: number, accepted: number): boolean {
    if (nowMs >= this.#limitedUntilMs) {
      if (!this.#isSilent(nowMs)) return false
      this.#setLimit(nowMs, accepted)
    }
    if (accepted + this.#again.size < (this.#limit ?? 0)) return false
    const next = first(this.#waiting)
    // Before the usual time, the answer may be on its way, and a backend that accepts all connections would lose one for each new one.
    if (next && nowMs - next.sinceMs < Math.max(this.#usualMs, this.#patienceMs / this.#confirmed))
      return false
    if (!next) return nowMs >= this.#againAtMs && this.#isSilent(nowMs) && this.#claimRepeatedClose(nowMs)
    this.#waiting.delete(next)
    this.#again.add(next)
    this.#postpone(next, nowMs, this.#patienceMs * 2)
    return true
  }

  #isSilent(nowMs: number): boolean {
    const oldest = first(this.#again) ?? first(this.#waiting)
    const sinceMs = this.#silentSinceMs
    if (!oldest || sinceMs === undefined) return false
    const silenceMs = Math.max(MIN_PATIENCE_MS, this.#usualMs * SILENCE) * this.#caution
    const from = Math.max(sinceMs, oldest.sinceMs)
    return nowMs - from >= silenceMs && nowMs - oldest.sinceMs >= this.#patienceMs / (this.#confirmed + 1)
  }

  #setLimit(nowMs: number, accepted: number): void {
    if (this.#limit !== undefined) this.#caution = Math.max(this.#caution / 2, 1)
    this.#confirmed++
    const minMs = Math.max(MIN_LIMIT_MS, this.#usualMs * LIMIT)
    this.#limitMs = Math.min(Math.max(minMs, this.#limitMs * 2), MAX_LIMIT_MS)
    this.#limit = accepted
    this.#limitedUntilMs = nowMs + this.#limitMs
  }

  #claimRepeatedClose(nowMs: number): boolean {
    let nextMs = Number.POSITIVE_INFINITY
    for (const unanswered of this.#again) {
      if (nowMs >= unanswered.dueMs) {
        this.#postpone(unanswered, nowMs, unanswered.patienceMs * 2)
        return true
      }
      nextMs = Math.min(nextMs, unanswered.dueMs)
    }
    this.#againAtMs = nextMs
    return false
  }

  #postpone(unanswered: Unanswered, nowMs: number, patienceMs: number): void {
    unanswered.patienceMs = patienceMs
    unanswered.dueMs = nowMs + patienceMs
    this.#againAtMs = Math.min(this.#againAtMs, unanswered.dueMs)
  }

  get #patienceMs(): number {
    return Math.max(MIN_PATIENCE_MS, this.#usualMs * PATIENCE)
  }
}

function first<Item>(items: Iterable<Item>): Item | undefined {
  for (const item of items) return item
  return undefined
}
