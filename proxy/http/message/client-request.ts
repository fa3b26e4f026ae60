import { EventEmitter } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { ByteQueue } from './byte-queue.ts'
import { headersOf } from './headers.ts'

/** Shared by all requests without trailers. */
const none: readonly string[] = []

type RequestEvent = 'data' | 'end' | 'close'
type Listener = (...args: never[]) => void

/**
 * A request from a client, over either HTTP version. Its body is read like a stream: it flows from the first listener of
 * `data` or from `resume` on, in later turns of the event loop, unless it has been paused.
 *
 * Events: `data`, with a piece of the body; `end`, once all of the body has been given out; `close`, last and once: the body
 * was read to its end, or will not come.
 */
export abstract class ClientRequest {
  abstract readonly httpVersion: string
  abstract readonly httpVersionMajor: number
  readonly method: string
  /** The request target as it came, one character a byte. */
  readonly url: string
  /** Name, value, name, value… in the order in which they came, with names in lower case. */
  readonly rawHeaders: readonly string[]
  /** The same by name. Of a header that repeats the lines are joined by commas, of `cookie` by semicolons. */
  readonly headers: IncomingHttpHeaders
  rawTrailers: readonly string[] = none
  /** The connection that it came on, which with TLS is the decrypted one. Over HTTP/2 others share it. */
  readonly socket: Socket
  /** The body has arrived to its end, read or not. */
  complete = false
  /** Made for the first listener. Without a body there is mostly none. */
  #events: EventEmitter | undefined
  #waiting: ByteQueue | undefined
  /** Undefined until it is said whether the body is to flow. */
  #flowing: boolean | undefined
  #scheduled = false
  #ended = false
  #closed = false

  constructor(socket: Socket, method: string, url: string, rawHeaders: readonly string[]) {
    this.socket = socket
    this.method = method
    this.url = url
    this.rawHeaders = rawHeaders
    this.headers = headersOf(rawHeaders)
  }

  /** Content follows the head, as far as is known before any of it has arrived. */
  abstract readonly hasContent: boolean

  /** Bytes of the body that have arrived and were not given out. */
  get waitingBytes(): number {
    return this.#waiting?.bytes ?? 0
  }

  /** Nothing more of the body is given out: all of it was, or it will not come. */
  get isClosed(): boolean {
    return this.#closed
  }

  isPaused(): boolean {
    return this.#flowing === false
  }

  pause(): this {
    this.#flowing = false
    return this
  }

  resume(): this {
    if (this.#flowing !== true) {
      this.#flowing = true
      this.#schedule()
    }
    return this
  }

  on(event: RequestEvent, listener: Listener): this {
    this.#events ??= new EventEmitter()
    this.#events.on(event, listener as (...args: unknown[]) => void)
    if (event === 'data' && this.#flowing === undefined) this.resume()
    return this
  }

  once(event: RequestEvent, listener: Listener): this {
    this.#events ??= new EventEmitter()
    this.#events.once(event, listener as (...args: unknown[]) => void)
    return this
  }

  off(event: RequestEvent, listener: Listener): this {
    this.#events?.off(event, listener as (...args: unknown[]) => void)
    return this
  }

  /** Nobody wants the rest of the body: it is read and dropped. */
  dump(): void {
    this.#events?.removeAllListeners('data')
    this.resume()
  }

  /** Takes the next piece of the body as it arrives. */
  protected receive(piece: Buffer): void {
    if (this.#flowing === true && this.#waiting === undefined) {
      this.#events?.emit('data', piece)
      this.onConsumed(piece.length)
      return
    }
    this.#waiting ??= new ByteQueue()
    this.#waiting.push(piece)
  }

  /** The body has arrived to its end. */
  protected receiveEnd(): void {
    this.complete = true
    if (this.#flowing === true) this.#schedule()
  }

  /** No more of the body will come, and nothing that waits is wanted. */
  protected drop(): void {
    this.#waiting = undefined
    this.#close()
  }

  /** Called when listeners have received so many bytes of the body. */
  protected abstract onConsumed(bytes: number): void

  /** Emits the pending data in a later turn, so that no listener is called while it is being added. */
  #schedule(): void {
    if (this.#scheduled || this.#closed) return
    this.#scheduled = true
    process.nextTick(() => {
      this.#scheduled = false
      this.#giveOut()
    })
  }

  #giveOut(): void {
    while (this.#flowing === true && this.#waiting) {
      const piece = this.#waiting.shift()
      if (!piece) {
        this.#waiting = undefined
        break
      }
      this.#events?.emit('data', piece)
      this.onConsumed(piece.length)
    }
    if (!this.complete || this.#flowing !== true || this.#waiting || this.#ended || this.#closed) return
    this.#ended = true
    this.#events?.emit('end')
    this.#close()
  }

  #close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#events?.emit('close')
  }
}
