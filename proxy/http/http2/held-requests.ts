/** Requests are held back only on a connection with at least this many unread responses, or requests in flight. */
const ALWAYS_SERVED = 8
/** How many more requests may be in flight for each response that the client has read. */
const SERVED_PER_RESPONSE = 2
/** One held request is served per this time in any case: a client may read one response only after it has another. */
const SERVE_ONE_EACH_MS = 2_000
const CHECK_MS = 250

/** A stream whose request may be held back. */
export type HeldStream = {
  /** Whether the stream has not been reset. */
  readonly isOpen: boolean
  /** Whether some of the response is pending. */
  readonly isUnread: boolean
}

export type HeldOwner<Stream> = {
  /** The open streams, by id. */
  readonly streams: ReadonlyMap<number, Stream>
  /** Requests in flight: they are being served, or the operating system has not taken all of their response yet. */
  readonly openRequests: number
  /** Responses that the operating system has taken completely. */
  readonly responsesSent: number
  /** Closes the connection if it is closing and all received requests are answered. */
  closeIfDone(): void
}

/**
 * Holds back requests of a connection with many unread responses while unread responses take too much memory: each further response would
 * be read from the backend for nothing. Closing the connection would not help against a client that opens another one and asks for
 * everything again. A new connection is therefore treated the same: it gets more requests served only as it reads responses.
 */
export class HeldRequests<Stream extends HeldStream> {
  readonly #owner: HeldOwner<Stream>
  readonly #isPressed: () => boolean
  readonly #now: () => number
  readonly #serve: (stream: Stream) => void
  #held: Stream[] = []
  #lastServedMs = -Infinity
  #timer: NodeJS.Timeout | undefined

  /**
   * @param isPressed returns whether unread responses take too much memory
   * @param now monotonic milliseconds
   * @param serve called for each stream that was held back, when it may be served
   */
  constructor(
    owner: HeldOwner<Stream>,
    isPressed: () => boolean,
    now: () => number,
    serve: (stream: Stream) => void,
  ) {
    this.#owner = owner
    this.#isPressed = isPressed
    this.#now = now
    this.#serve = serve
  }

  get isEmpty(): boolean {
    return this.#held.length === 0
  }

  /** Whether the next request must be held back. */
  get mustHold(): boolean {
    return this.#held.length > 0 || this.#hasTooManyUnread()
  }

  /** Holds back the request of a stream. */
  hold(stream: Stream): void {
    if (this.#held.length === 0) {
      this.#lastServedMs = this.#now()
      this.#timer = setInterval(() => this.serveIfAllowed(), CHECK_MS).unref()
    }
    this.#held.push(stream)
  }

  /** Drops all held requests. */
  clear(): void {
    clearInterval(this.#timer)
    this.#held = []
  }

  /** Serves held requests as far as possible now. Call when the client has read a response. */
  serveIfAllowed(): void {
    this.#held = this.#held.filter(({ isOpen }) => isOpen)
    while (this.#held.length > 0) {
      const nowMs = this.#now()
      if (this.#hasTooManyUnread()) {
        if (nowMs - this.#lastServedMs < SERVE_ONE_EACH_MS) return
        this.#lastServedMs = nowMs
      }
      const stream = this.#held.shift()
      if (stream?.isOpen) this.#serve(stream)
    }
    this.clear()
    // All held streams may have been reset, and then nothing else closes the connection.
    this.#owner.closeIfDone()
  }

  #hasTooManyUnread(): boolean {
    if (!this.#isPressed()) return false
    const { streams, openRequests, responsesSent } = this.#owner
    if (openRequests >= ALWAYS_SERVED + SERVED_PER_RESPONSE * responsesSent) return true
    let unread = 0
    for (const stream of streams.values()) if (stream.isUnread && ++unread >= ALWAYS_SERVED) return true
    return false
  }
}
