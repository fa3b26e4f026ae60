/** So many unread responses on a connection, or requests of a new one, are no reason to hold back others. */
const ALLOWED = 8
/** So many more requests at a time for each response that the client has taken. */
const MORE_EACH = 2
/** One request is served in this time however many responses are unread: a client may read only when it has another answer. */
const EACH_MS = 2_000
const LOOK_MS = 250

/** A stream whose request may be held back. */
export type HeldStream = {
  /** It has not been reset. */
  readonly isOpen: boolean
  /** Some of its response waits for the client's window. */
  readonly isUnread: boolean
}

export type HeldOwner<Stream> = {
  /** All that are open, by number. */
  readonly streams: ReadonlyMap<number, Stream>
  /** Requests that are served, or whose response has not been handed to the system. */
  readonly openRequests: number
  /** Responses that were handed to the system as a whole. */
  readonly responsesSent: number
  /** Ends the connection, if it is to end and all that has come is answered. */
  endWhereDone(): void
}

/**
 * Holds back requests of a connection of which many responses are unread, while unread responses take too much memory: each further
 * one would be read from the backend for nothing. Closing the connection alone does not help against a client that opens another one
 * and asks for all of it again: so a new one gets more requests served as it takes responses.
 */
export class HeldRequests<Stream extends HeldStream> {
  readonly #owner: HeldOwner<Stream>
  readonly #isPressed: () => boolean
  readonly #now: () => number
  readonly #serve: (stream: Stream) => void
  #held: Stream[] = []
  #lastMs = -Infinity
  #timer: NodeJS.Timeout | undefined

  /**
   * @param isPressed unread responses take too much memory
   * @param now monotonic milliseconds
   * @param serve called for those that were held back
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

  /** Returns whether it keeps the stream, to be served later. */
  hold(stream: Stream): boolean {
    if (this.#held.length === 0) {
      if (!this.#isHolding()) return false
      this.#lastMs = this.#now()
      this.#timer = setInterval(() => this.serveWherePossible(), LOOK_MS).unref()
    }
    this.#held.push(stream)
    return true
  }

  /** None of them is served any more. */
  clear(): void {
    clearInterval(this.#timer)
    this.#held = []
  }

  /** To be called when a response was taken. */
  serveWherePossible(): void {
    this.#held = this.#held.filter(({ isOpen }) => isOpen)
    while (this.#held.length > 0) {
      const nowMs = this.#now()
      if (this.#isHolding()) {
        if (nowMs - this.#lastMs < EACH_MS) return
        this.#lastMs = nowMs
      }
      const stream = this.#held.shift()
      if (stream?.isOpen) this.#serve(stream)
    }
    this.clear()
    // They may all have been reset.
    this.#owner.endWhereDone()
  }

  #isHolding(): boolean {
    if (!this.#isPressed()) return false
    const { streams, openRequests, responsesSent } = this.#owner
    if (openRequests >= ALLOWED + MORE_EACH * responsesSent) return true
    let unread = 0
    for (const stream of streams.values()) if (stream.isUnread && ++unread >= ALLOWED) return true
    return false
  }
}
