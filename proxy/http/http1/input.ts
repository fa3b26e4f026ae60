import type { Socket } from 'node:net'
import { MAX_BUFFERED_BYTES, readAtEndOfTurn, type Reader } from '../message/end-of-turn.ts'
import { pauseReading } from '../message/pause-reading.ts'
import { countWholeRequests, PipelinedBytes } from './pipelined-bytes.ts'
import { PrefaceWatch } from './preface.ts'
import { RequestParser, type RequestSink } from './parser/request-parser.ts'
import type { BodyReading, Http1Request } from './request.ts'
import type { Http1Service } from './service.ts'

/** The connection that reads the input, and receives its requests. */
export type InputOwner = RequestSink & {
  /** The request in flight, or the one whose rest is being dropped. */
  readonly request: Http1Request | undefined
  /** Whether more can be read. */
  readonly isOpen: boolean
  /** Runs a step. An exception ends the request or the connection. */
  guard(step: () => void): void
  /** The client speaks HTTP/2, which takes over the connection. @param bytes received so far */
  leaveToHttp2(bytes: Buffer): void
}

/** Reading pauses when this many bytes of a request's body, and after it, are buffered. */
const MAX_BUFFERED_INPUT = 64 * 1024
/**
 * The socket is paused if this many bytes are still buffered at the end of a turn, because nobody reads the body yet. A body that is read
 * at once causes no pause.
 */
const MAX_WAITING_INPUT = 16 * 1024

/**
 * The input of a connection: reads one request at a time. Bytes after a request are buffered, and read when it has been answered. While
 * too many are buffered, nothing more is read.
 */
export class Input implements Reader, BodyReading {
  readonly #socket: Socket
  readonly #owner: InputOwner
  readonly #service: Http1Service
  readonly #parser: RequestParser
  #preface: PrefaceWatch | undefined
  /** Bytes received in this turn while no request is in flight; read at the end of the turn. */
  #buffered: Buffer | undefined
  #pipelined: PipelinedBytes | undefined
  #isReading = true
  /** Whether a check at the end of this turn will decide about pausing. */
  #pausesSoon = false
  #isDiscarded = false
  #hasReceived = false
  #headSinceMs: number | undefined

  constructor(socket: Socket, owner: InputOwner, service: Http1Service) {
    this.#socket = socket
    this.#owner = owner
    this.#service = service
    this.#parser = new RequestParser(owner, service.headLimits)
    if (service.onPreface) this.#preface = new PrefaceWatch()
  }

  /** Bytes have been received, even if only empty lines. */
  get hasReceived(): boolean {
    return this.#hasReceived
  }

  /** Bytes are buffered until the end of this turn. */
  get hasBuffered(): boolean {
    return this.#buffered !== undefined
  }

  /** Bytes have been received after the request in flight. */
  get hasPipelined(): boolean {
    return this.#pipelined !== undefined && this.#pipelined.bytes > 0
  }

  /** A request, or the HTTP/2 preface, has begun to arrive, and its head is incomplete. */
  get isInHead(): boolean {
    return this.#preface?.hasBegun === true || this.#parser.isInHead
  }

  /** When the incomplete head began to arrive, in monotonic milliseconds; undefined without one. */
  get headSinceMs(): number | undefined {
    return this.#headSinceMs
  }

  /** Further bytes are dropped. */
  get isDiscarded(): boolean {
    return this.#isDiscarded
  }

  /** The input could not be parsed: drops further bytes. */
  discard(): void {
    this.#isDiscarded = true
  }

  receive(bytes: Buffer): void {
    if (this.#buffered) {
      this.#buffered = Buffer.concat([this.#buffered, bytes])
      this.readBuffered()
      // While the client may speak HTTP/2, bytes are read at once: HTTP/2 must get the first bytes before the end of the connection.
    } else if (this.#owner.request || this.#preface || bytes.length > MAX_BUFFERED_BYTES)
      this.#readOrDrop(bytes)
    else {
      this.#buffered = bytes
      readAtEndOfTurn(this)
    }
  }

  readBuffered(): void {
    const bytes = this.#buffered
    this.#buffered = undefined
    if (bytes && !this.#socket.destroyed) this.#readOrDrop(bytes)
  }

  #readOrDrop(bytes: Buffer): void {
    if (!this.#owner.isOpen || this.#isDiscarded) return
    this.#hasReceived = true
    this.#owner.guard(() => (this.#preface ? this.#watch(this.#preface, bytes) : this.#read(bytes)))
  }

  #watch(preface: PrefaceWatch, bytes: Buffer): void {
    const seen = preface.read(bytes)
    if (seen === undefined) return
    this.#preface = undefined
    if (preface.isPreface) this.#owner.leaveToHttp2(seen)
    else this.#read(seen)
  }

  #read(bytes: Buffer): void {
    const owner = this.#owner
    let at = 0
    while (at < bytes.length && owner.isOpen) {
      if (owner.request?.complete) return this.#bufferPipelined(at === 0 ? bytes : bytes.subarray(at))
      at = this.#parser.execute(bytes, at)
    }
    if (owner.request) this.#updateReading()
    else this.#trackHeadTime()
  }

  /** Buffers the bytes after a request that is being served. */
  #bufferPipelined(bytes: Buffer): void {
    this.#pipelined ??= new PipelinedBytes()
    this.#pipelined.push(bytes)
    this.#updateReading()
  }

  #trackHeadTime(): void {
    if (!this.#parser.isInHead) this.#headSinceMs = undefined
    else this.#headSinceMs ??= this.#service.now()
  }

  onBodyConsumed(): void {
    this.#updateReading()
  }

  #updateReading(): void {
    if (!this.#owner.isOpen) return
    const bytes = this.#waitingBytes
    if (bytes < MAX_WAITING_INPUT) this.#resume()
    else if (bytes >= MAX_BUFFERED_INPUT) this.#pause()
    else if (this.#isReading && !this.#pausesSoon) {
      this.#pausesSoon = true
      setImmediate(() => this.#pauseIfWaiting())
    }
  }

  /** Bytes of a request's body, and after it, that nobody has read. */
  get #waitingBytes(): number {
    const { request } = this.#owner
    const bodyBytes = !request || request.complete ? 0 : request.bufferedBytes
    return bodyBytes + (this.#pipelined?.bytes ?? 0)
  }

  #pauseIfWaiting(): void {
    this.#pausesSoon = false
    if (this.#owner.isOpen && this.#waitingBytes >= MAX_WAITING_INPUT) this.#pause()
  }

  #pause(): void {
    if (!this.#isReading) return
    this.#isReading = false
    pauseReading(this.#socket)
  }

  #resume(): void {
    if (this.#isReading) return
    this.#isReading = true
    this.#socket.resume()
  }

  /** The request in flight has been answered: reads the buffered bytes up to the end of the next one. */
  readNext(): void {
    this.#headSinceMs = undefined
    if (this.#pipelined) this.#owner.guard(() => this.#readPipelined())
    else this.#updateReading()
  }

  /** Whether a request is expected, or is incomplete. */
  #readsRequests(): boolean {
    return this.#owner.isOpen && !this.#owner.request?.complete
  }

  #readPipelined(): void {
    const pipelined = this.#pipelined
    if (!pipelined) return
    while (this.#readsRequests()) {
      const piece = pipelined.shift()
      if (!piece) {
        this.#pipelined = undefined
        break
      }
      let at = 0
      while (at < piece.length && this.#readsRequests()) at = this.#parser.execute(piece, at)
      if (at < piece.length) pipelined.unshift(piece.subarray(at))
    }
    if (!this.#owner.request) this.#trackHeadTime()
    this.#updateReading()
  }

  /** The number of complete requests after the one in flight. */
  countWholeRequests(): number {
    if (!this.#pipelined) return 0
    const bytes = this.#pipelined.takeAll()
    this.#pipelined.push(bytes)
    return countWholeRequests(bytes, this.#service.headLimits)
  }

  /** Takes out the bytes received after the request in flight. */
  takePipelined(): Buffer {
    return this.#pipelined?.takeAll() ?? Buffer.alloc(0)
  }

  /** Discards the buffered input. */
  drop(): void {
    this.#buffered = undefined
    this.#pipelined = undefined
  }
}
