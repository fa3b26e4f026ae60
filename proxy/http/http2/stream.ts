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
  /** Resets a stream, and lets go of it. */
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
  /** It is served, and neither the end of the response was written nor has one side reset it. */
  isOpen = true
  windowDifference = 0
  /** The handler has its request. */
  isServed = false
  hasTurn = false
  /** Bytes of content that are declared and have not come; undefined if nothing was declared. */
  #contentLeft: number | undefined
  /** Content of the frames of this read. */
  #content: JoinedBytes | undefined
  #receiveWindow = INITIAL_WINDOW
  #isGone = false
  /** Consumed bytes of which no WINDOW_UPDATE has told the client yet. */
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
   * @returns the code of the error that it is, if it is one
   */
  onDataFrame(length: number): number | undefined {
    if (this.hasRemoteEnded) return errorCodes.streamClosed
    this.#receiveWindow -= length
    return this.#receiveWindow < 0 ? errorCodes.flowControlError : undefined
  }

  /** Content has arrived that the stream has to emit. */
  hasUnflushedContent(): boolean {
    return this.#content !== undefined && !this.#content.isEmpty
  }

  /** Takes content, which is emitted at the end of the read, or now if it is long. Returns the error code if the content is an error. */
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

  /** Gives out what one read has brought of the content, in however many frames. */
  flushContent(): void {
    if (this.#content && !this.#content.isEmpty) this.request.onBody(this.#content.take())
  }

  /** The client has sent all of the request. Returns the code of the error that this is, if it is one. */
  onRemoteEnd(): number | undefined {
    if (this.#contentLeft !== undefined && this.#contentLeft > 0) return errorCodes.protocolError
    this.flushContent()
    this.hasRemoteEnded = true
    this.request.onBodyEnd()
    return undefined
  }

  /** Bytes of DATA frames were consumed, padding included: the client may send as many more. */
  onConsumed(bytes: number): void {
    if (this.hasRemoteEnded || this.#isGone) return
    this.#consumedBytes += bytes
    if (this.#consumedBytes < INITIAL_WINDOW / 2) return
    this.#receiveWindow += this.#consumedBytes
    this.#connection.output.send(numbersFrame(frameTypes.windowUpdate, 0, this.id, this.#consumedBytes))
    this.#consumedBytes = 0
  }

  /** The response is complete: the rest of the request is dropped, and the client gets window updates for it. */
  dropRest(): void {
    this.flushContent()
    const { bufferedBytes } = this.request
    this.request.dropRest()
    this.onConsumed(bufferedBytes)
  }

  /** One side has reset the stream, or the connection has closed. */
  onClosed(): void {
    this.isOpen = false
    this.#isGone = true
    this.#content = undefined
    this.request.dropRest()
    this.response.markClosed()
  }

  /** Some of the response waits for the client's window, or for it to read. */
  get isUnread(): boolean {
    return this.response.pendingBytes > 0
  }

  get socket(): Socket {
    return this.#connection.socket
  }

  get isFull(): boolean {
    return this.#connection.output.isFull
  }

  begin(): void {
    this.#connection.output.begin(this)
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
