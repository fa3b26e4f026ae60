import { EventEmitter } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { ByteQueue } from './byte-queue.ts'
import { headersOf } from './headers.ts'

/** Shared by all requests without trailers. */
const none: readonly string[] = []

/** The identity of a connection, shared with the socket that TLS puts around it. */
export type ConnectionAddresses = Pick<Socket, 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort'>

type RequestEvent = 'data' | 'end' | 'close'
type Listener = (...args: never[]) => void

/**
 * A request from a client, over either HTTP version. Its body is read like a stream: it starts to flow with the first listener of `data` or
 * with `resume`, asynchronously, unless it has been paused.
 *
 * Events: `data`, with a piece of the body; `end`, after the last piece; `close`, once and last, when the body has been read to its end or
 * the rest will not come.
 */
export abstract class ClientRequest {
  abstract readonly httpVersion: string
  abstract readonly httpVersionMajor: number
  readonly method: string
  /** The request target as received, one character per byte. */
  readonly url: string
  /** Name, value, name, value… in the order in which they came, with names in lower case. */
  readonly rawHeaders: readonly string[]
  /** The header fields by name. Lines of a repeated header are joined by commas, those of `cookie` by semicolons. */
  readonly headers: IncomingHttpHeaders
  /** Trailers as in `rawHeaders`. They are not passed on. */
  rawTrailers: readonly string[] = none
  /** The socket on which the request arrived: with TLS, the TLS socket. Over HTTP/2, other requests share it. */
  readonly socket: Socket
  /** Whether all of the body has arrived, read or not. */
  complete = false
  /** Created with the first listener, because most requests without a body have no listeners. */
  #events: EventEmitter | undefined
  #buffered: ByteQueue | undefined
  /** Whether the body is read; undefined before the first listener of `data`, `resume` or `pause`. */
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

  /** Whether the head announces content. */
  abstract readonly hasContent: boolean

  /** Bytes of the body that have arrived and that no listener has received. */
  get bufferedBytes(): number {
    return this.#buffered?.bytes ?? 0
  }

  /** Whether `close` was emitted. No part of the body is emitted after it. */
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

  /** Reads and discards the rest of the body. */
  dump(): void {
    this.#events?.removeAllListeners('data')
    this.resume()
  }

  /** Takes the next piece of the body as it arrives. */
  protected receive(piece: Buffer): void {
    if (this.#flowing === true && this.#buffered === undefined) {
      this.#events?.emit('data', piece)
      this.onConsumed(piece.length)
      return
    }
    this.#buffered ??= new ByteQueue()
    this.#buffered.push(piece)
  }

  /** Call when the last byte of the body has arrived. */
  protected receiveEnd(): void {
    this.complete = true
    if (this.#flowing === true) this.#schedule()
  }

  /** Discards the buffered part of the body, and ends it. Call if the rest will not come, or is not wanted. */
  protected drop(): void {
    this.#buffered = undefined
    this.#close()
  }

  /** Called with the number of bytes of the body that listeners have just received. */
  protected abstract onConsumed(bytes: number): void

  /** Emits the buffered data later, so that no listener is called while it is being added. */
  #schedule(): void {
    if (this.#scheduled || this.#closed) return
    this.#scheduled = true
    process.nextTick(() => {
      this.#scheduled = false
      this.#emitBuffered()
    })
  }

  #emitBuffered(): void {
    while (this.#flowing === true && this.#buffered) {
      const piece = this.#buffered.shift()
      if (!piece) {
        this.#buffered = undefined
        break
      }
      this.#events?.emit('data', piece)
      this.onConsumed(piece.length)
    }
    if (!this.complete || this.#flowing !== true || this.#buffered || this.#ended || this.#closed) return
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
