import type { Socket } from 'node:net'
import { JoinedBytes, MIN_SEPARATE_BYTES } from '../message/joined-bytes.ts'
import { errorCodes, frameTypes, INITIAL_WINDOW, numbersFrame } from './frames.ts'
import type { Http2Output, OutgoingStream } from './output/output.ts'
import { Http2Request, type RequestStream } from './request.ts'
import type { RequestFields } from './request-fields.ts'
import { Http2Response, type ResponseStream } from './response.ts'

/** The connection of a stream. */
export type StreamOwner = {
  readonly socket: Socket
  readonly output: Http2Output<Http2Stream>
  clientOf(request: Http2Request): string
  /** Resets a stream, and removes it from the connection. */
  resetStream(stream: Http2Stream, code: number): void
}

/** A stream that a client has opened: a request, and the response to it. */
export class Http2Stream implements RequestStream, ResponseStream, OutgoingStream {
  readonly #connection: StreamOwner
  readonly id: number
  readonly request: Http2Request
  readonly response: Http2Response
  /** The client has sent all of the request. */
  hasRemoteEnded: boolean
  /** The end of the response has not been written, and neither side has reset the stream. */
  isOpen = true
  windowDifference = 0
  /** The handler has its request, and its response is not finished. */
  isServed = false
  isQueued = false
  /** Bytes of the declared content that have not arrived; undefined if no length was declared. */
  #contentLeft: number | undefined
  /** Content of this read that is not passed to the request yet. */
  #content: JoinedBytes | undefined
  #receiveWindow = INITIAL_WINDOW
  #isGone = false
  #client: string | undefined
  /** Consumed bytes that no WINDOW_UPDATE has returned to the client yet. */
  #consumedBytes = 0

  constructor(connection: StreamOwner, id: number, fields: RequestFields, endsWithHeaders: boolean) {
    this.#connection = connection
    this.id = id
    this.hasRemoteEnded = endsWithHeaders
    this.#contentLeft = fields.contentLength
    this.request = new Http2Request(this, fields, !endsWithHeaders)
    this.response = new Http2Response(this, this.request)
  }

  /**
   * Counts the payload of a DATA frame.
   *
   * @returns the error code if the frame is an error
   */
  onDataFrame(length: number): number | undefined {
    if (this.hasRemoteEnded) return errorCodes.streamClosed
    this.#receiveWindow -= length
    return this.#receiveWindow < 0 ? errorCodes.flowControlError : undefined
  }

  /** Content of this read is not passed to the request yet. */
  hasUnflushedContent(): boolean {
    return this.#content !== undefined && !this.#content.isEmpty
  }

  /** Passes content to the request: at the end of the read, or now if it is long. Returns the error code if the content is an error. */
  onData(bytes: Buffer, from: number, to: number): number | undefined {
    if (this.#contentLeft !== undefined && (this.#contentLeft -= to - from) < 0)
      return errorCodes.protocolError
    if (to - from >= MIN_SEPARATE_BYTES) {
      this.flushContent()
      this.request.onBody(bytes.subarray(from, to))
    } else {
      this.#content ??= new JoinedBytes()
      this.#content.add(bytes, from, to)
    }
    return undefined
  }

  /** Passes the content of one read to the request in one piece, no matter in how many frames it came. */
  flushContent(): void {
    if (this.#content && !this.#content.isEmpty) this.request.onBody(this.#content.take())
  }

  /** The client has ended its request. Returns the error code if content is missing. */
  onRemoteEnd(): number | undefined {
    if (this.#contentLeft !== undefined && this.#contentLeft > 0) return errorCodes.protocolError
    this.flushContent()
    this.hasRemoteEnded = true
    this.request.onBodyEnd()
    return undefined
  }

  /** Call when bytes of DATA frames have been consumed, padding included. The client may then send as many more. */
  onConsumed(bytes: number): void {
    if (this.hasRemoteEnded || this.#isGone) return
    this.#consumedBytes += bytes
    if (this.#consumedBytes < INITIAL_WINDOW / 2) return
    this.#receiveWindow += this.#consumedBytes
    this.#connection.output.send(numbersFrame(frameTypes.windowUpdate, 0, this.id, this.#consumedBytes))
    this.#consumedBytes = 0
  }

  /** The response is complete: drops the rest of the request, and sends window updates for it. */
  dropRest(): void {
    this.flushContent()
    const { bufferedBytes } = this.request
    this.request.dropRest()
    this.onConsumed(bufferedBytes)
  }

  /** Called when one side has reset the stream, or the connection has closed. */
  onClosed(): void {
    this.isOpen = false
    this.#isGone = true
    this.#content = undefined
    this.request.dropRest()
    this.response.markClosed()
  }

  /** The client of the request: a proxy sends those of many over one connection. */
  get client(): string {
    return (this.#client ??= this.#connection.clientOf(this.request))
  }

  /** Whether some of the response is pending until the client reads, or enlarges its window. */
  get isUnread(): boolean {
    return this.response.pendingBytes > 0
  }

  get socket(): Socket {
    return this.#connection.socket
  }

  get isBacklogged(): boolean {
    return this.#connection.output.isBacklogged
  }

  enqueue(): void {
    this.#connection.output.enqueue(this)
  }

  sendInterimResponse(status: number, fields: readonly string[]): void {
    this.#connection.output.sendInterimResponse(this, status, fields)
  }

  reset(): void {
    this.#connection.resetStream(this, errorCodes.internalError)
  }

  destroyConnection(): void {
    this.#connection.socket.destroy()
  }
}
