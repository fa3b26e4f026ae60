/** Requests are held back only if their client has at least this many unread responses, or requests in flight, on the connection. */
const ALWAYS_SERVED = 8
/** How many more requests may be in flight for each response that the client has read. */
const SERVED_PER_RESPONSE = 2
/** One held request is served per this time in any case: a client may read one response only after it has another. */
const SERVE_ONE_EACH_MS = 2_000
const CHECK_MS = 250
/** The maximum number of clients for which reset responses are counted. */
const MAX_COUNTED_CLIENTS = 1_000

/** A stream whose request may be held back. */
export type HeldStream = {
  /** Whether the stream has not been reset. */
  readonly isOpen: boolean
  /** Whether some of the response is pending. */
  readonly isUnread: boolean
  /** The request is in flight. */
  readonly isServed: boolean
  /** The client of the request: a proxy sends those of many over one connection. */
  readonly client: string
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
 * Holds back requests of a client with many unread responses on a connection while unread responses take too much memory: each further
 * response would be read from the backend for nothing. Closing the connection would not help against a client that opens another one and
 * asks for everything again. A new connection is therefore treated the same: it gets more requests served only as it reads responses.
 */
export class HeldRequests<Stream extends HeldStream> {
  readonly #owner: HeldOwner<Stream>
  readonly #isPressed: () => boolean
  readonly #now: () => number
  readonly #serve: (stream: Stream) => void
  #held: Stream[] = []
  /** For each client with held requests, when one of them was last served, or the first was held back. */
  readonly #servedMs = new Map<string, number>()
  /** For each client, how many of its unread responses were reset since unread responses take too much memory. */
  readonly #resets = new Map<string, number>()
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

  /** Whether the next request of this stream's client must be held back. */
  mustHold(stream: Stream): boolean {
    if (this.#held.length === 0 && !this.#isPressed()) {
      this.#resets.clear()
      return false
    }
    return this.#servedMs.has(stream.client) || this.#hasTooManyUnread(stream.client)
  }

  /** Holds back the request of a stream. */
  hold(stream: Stream): void {
    if (this.#held.length === 0) this.#timer = setInterval(() => this.serveIfAllowed(), CHECK_MS).unref()
    if (!this.#servedMs.has(stream.client)) this.#servedMs.set(stream.client, this.#now())
    this.#held.push(stream)
  }

  /**
   * Call before a stream is reset. A response that its client has not read still counts as unread: otherwise the next held request would
   * take its place, and be read from the backend to be reset too.
   */
  countReset(stream: Stream): void {
    if (!stream.isUnread || !this.#isPressed()) return
    const { client } = stream
    if (this.#resets.size >= MAX_COUNTED_CLIENTS) this.#resets.clear()
    this.#resets.set(client, (this.#resets.get(client) ?? 0) + 1)
  }

  /** Call when the client of a stream has read its response. */
  onRead(stream: Stream): void {
    // The client of a stream is read only if it matters.
    if (this.#resets.size > 0) this.#resets.delete(stream.client)
    if (!this.isEmpty) this.serveIfAllowed()
  }

  /** Drops all held requests. */
  clear(): void {
    clearInterval(this.#timer)
    this.#held = []
    this.#servedMs.clear()
  }

  /** Serves held requests as far as possible now. */
  serveIfAllowed(): void {
    const over = new Set<string>()
    const left: Stream[] = []
    for (const stream of this.#held) {
      // One that is served may end others, or be answered, before the next line.
      if (!isWaiting(stream)) continue
      if (this.#mustWait(stream.client, over)) left.push(stream)
      else this.#serve(stream)
    }
    this.#held = left.filter(isWaiting)
    if (this.#held.length > 0) return this.#forgetServed()
    this.clear()
    // All held streams may have been reset, and then nothing else closes the connection.
    this.#owner.closeIfDone()
  }

  /** @param over the clients that were found to have too many unread responses */
  #mustWait(client: string, over: Set<string>): boolean {
    if (!over.has(client) && !this.#hasTooManyUnread(client)) return false
    over.add(client)
    const nowMs = this.#now()
    if (nowMs - (this.#servedMs.get(client) ?? nowMs) < SERVE_ONE_EACH_MS) return true
    this.#servedMs.set(client, nowMs)
    return false
  }

  /** Forgets the clients that have no more held requests. */
  #forgetServed(): void {
    const clients = new Set(this.#held.map(({ client }) => client))
    for (const client of this.#servedMs.keys()) if (!clients.has(client)) this.#servedMs.delete(client)
  }

  #hasTooManyUnread(client: string): boolean {
    if (!this.#isPressed()) {
      this.#resets.clear()
      return false
    }
    const { streams, openRequests, responsesSent } = this.#owner
    let unread = this.#resets.get(client) ?? 0
    if (unread >= ALWAYS_SERVED) return true
    let othersOpen = 0
    for (const stream of streams.values()) {
      if (stream.client !== client) othersOpen += Number(stream.isServed)
      else if (stream.isUnread && ++unread >= ALWAYS_SERVED) return true
    }
    return openRequests - othersOpen >= ALWAYS_SERVED + SERVED_PER_RESPONSE * responsesSent
  }
}

function isWaiting({ isOpen, isServed }: HeldStream): boolean {
  return isOpen && !isServed
}
