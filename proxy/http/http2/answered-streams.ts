import type { Http2Stream } from './stream.ts'

/** How long the rest of a request may still arrive after its response is complete. */
const PATIENCE_MS = 1_000

/**
 * Streams whose response is complete while the client still sends its request. For a second, further data is read and dropped; then the
 * client is asked not to send the rest (RFC 9113 section 8.1). If it is asked at once, together with the response, curl takes that for an
 * error and loses the response.
 */
export class AnsweredStreams {
  readonly #streams = new Map<number, { readonly stream: Http2Stream; readonly untilMs: number }>()
  readonly #max: number
  readonly #now: () => number
  readonly #stop: (id: number) => void
  #timer: NodeJS.Timeout | undefined

  /**
   * @param max streams at a time
   * @param now monotonic milliseconds
   * @param stop asks the client not to send the rest
   */
  constructor(max: number, now: () => number, stop: (id: number) => void) {
    this.#max = max
    this.#now = now
    this.#stop = stop
  }

  add(stream: Http2Stream): void {
    this.#streams.set(stream.id, { stream, untilMs: this.#now() + PATIENCE_MS })
    if (this.#streams.size > this.#max) {
      const [oldest] = this.#streams.keys()
      if (oldest !== undefined) this.end(oldest)
    }
    this.#timer ??= setTimeout(this.#check, PATIENCE_MS).unref()
  }

  get isEmpty(): boolean {
    return this.#streams.size === 0
  }

  get(id: number): Http2Stream | undefined {
    return this.#streams.size > 0 ? this.#streams.get(id)?.stream : undefined
  }

  /**
   * Call when the client has ended its request, perhaps because it was answered. The stream is reset anyway: curl 7.88 would otherwise wait
   * forever for the next frame. Returns whether the stream was one of these.
   */
  end(id: number): boolean {
    if (!this.#streams.delete(id)) return false
    this.#stop(id)
    return true
  }

  /** The stream has been reset. */
  delete(id: number): void {
    this.#streams.delete(id)
  }

  /** The connection has closed. */
  clear(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#streams.clear()
  }

  readonly #check = (): void => {
    this.#timer = undefined
    const nowMs = this.#now()
    for (const [id, { untilMs }] of this.#streams) {
      if (untilMs > nowMs) {
        this.#timer = setTimeout(this.#check, untilMs - nowMs).unref()
        return
      }
      this.end(id)
    }
  }
}
