import type { Socket } from 'node:net'
import { joinAtEndOfTurn, type Flushable } from '../../message/end-of-turn.ts'
import {
  ConnectionError,
  errorCodes,
  FRAME_HEAD_BYTES,
  frameTypes,
  INITIAL_WINDOW,
  MAX_FRAME_BYTES,
  MAX_WINDOW,
  numbersFrame,
} from '../frames.ts'
import { HpackEncoder } from '../hpack/encoder.ts'
import type { Http2Response } from '../response.ts'
import { FrameBuffer } from './frame-buffer.ts'

/** Maximum bytes of one write. */
const WRITE_BYTES = 64 * 1024
/** With more bytes pending, nothing is read from the client, as each request would add a response. */
const MAX_PENDING_BYTES = 256 * 1024

/** The sending side of a stream. */
export type OutgoingStream = {
  readonly id: number
  readonly response: Http2Response
  /** Whether more can be sent on the stream. */
  readonly isOpen: boolean
  /** Its send window, relative to the initial window. */
  windowDifference: number
  /** Whether the stream is in the queue of streams with output to send. */
  isQueued: boolean
}

export type OutputEvents<Stream> = {
  /** The end of the response of a stream was written. */
  onLocalEnd(stream: Stream): void
  /** A response was truncated: resets its stream. */
  onTruncated(stream: Stream): void
  /** The operating system has taken all of a response. */
  onSent(stream: Stream): void
  onException(error: unknown): void
}

/**
 * The output of an HTTP/2 connection: frames of all streams in turn, within the client's flow-control windows. The output of one turn of
 * the event loop is one write, as long as the client reads.
 */
export class Http2Output<Stream extends OutgoingStream> implements Flushable {
  readonly #socket: Socket
  readonly #events: OutputEvents<Stream>
  readonly #encoder = new HpackEncoder()
  #window = INITIAL_WINDOW
  #initialWindow = INITIAL_WINDOW
  /** Streams with output to send, in the order of their turns. */
  #queue: Stream[] = []
  readonly #frames: FrameBuffer
  /** Streams whose last frame is in `#frames`. */
  #ending: Stream[] = []
  #isScheduled = false
  #hasResponded = false

  constructor(socket: Socket, events: OutputEvents<Stream>) {
    this.#socket = socket
    this.#events = events
    this.#frames = new FrameBuffer(socket)
    socket.on('drain', () => this.#schedule())
  }

  /** Whether so much output is pending that the client seems not to read. Nothing more is read from such a client. */
  get isBacklogged(): boolean {
    return this.#frames.bytes + this.#socket.writableLength > MAX_PENDING_BYTES
  }

  /** Returns whether any part of a response has been written since the last call. */
  takeHasResponded(): boolean {
    const hasResponded = this.#hasResponded
    this.#hasResponded = false
    return hasResponded
  }

  /** Sends a frame. */
  send(frame: Buffer): void {
    this.#frames.push(frame)
    this.#schedule()
  }

  /** A response has data to send. */
  enqueue(stream: Stream): void {
    if (!stream.isOpen) return
    this.#addToQueue(stream)
    // If nothing can be written, the flush at least detaches the data from shared buffers.
    this.#schedule()
  }

  #addToQueue(stream: Stream): void {
    if (stream.isQueued) return
    stream.isQueued = true
    this.#queue.push(stream)
  }

  /** Sends an interim response. */
  sendInterimResponse(stream: Stream, status: number, fields: readonly string[]): void {
    this.#sendFields(stream, status, fields, false)
    this.#schedule()
  }

  /** The stream has closed: nothing more is sent on it. */
  remove(stream: Stream): void {
    if (!stream.isQueued) return
    stream.isQueued = false
    this.#queue.splice(this.#queue.indexOf(stream), 1)
  }

  /** The client has set the size of its HPACK table. */
  resizeTable(bytes: number): void {
    this.#encoder.resize(bytes)
  }

  /** Enlarges the window of the connection. @throws {ConnectionError} if it becomes larger than allowed */
  widen(bytes: number): void {
    this.#window += bytes
    if (this.#window > MAX_WINDOW)
      throw new ConnectionError(errorCodes.flowControlError, 'flow-control window above 2^31-1')
    this.#schedule()
  }

  /** Enlarges the window of a stream. Returns false if it exceeds the maximum. */
  widenStream(stream: Stream, bytes: number): boolean {
    stream.windowDifference += bytes
    if (this.#windowOf(stream) > MAX_WINDOW) return false
    if (stream.response.pendingBytes > 0) this.enqueue(stream)
    return true
  }

  /** Changes the initial window of all streams, open ones included. @throws {ConnectionError} if a window becomes larger than allowed */
  setInitialWindow(bytes: number, open: Iterable<Stream>): void {
    this.#initialWindow = bytes
    for (const stream of open)
      if (!this.widenStream(stream, 0))
        throw new ConnectionError(errorCodes.flowControlError, 'flow-control window above 2^31-1')
  }

  /** Negative if the client has reduced the initial window by more than was left. */
  #windowOf({ windowDifference }: Stream): number {
    return this.#initialWindow + windowDifference
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    joinAtEndOfTurn(this)
  }

  /** Writes as much of the output as possible now. */
  flush(): void {
    this.#isScheduled = false
    if (this.#socket.destroyed) return
    try {
      do this.#writeOnce()
      while (this.#canWriteMore)
      for (const { response } of this.#queue) response.detachPending()
    } catch (error) {
      this.#events.onException(error)
    }
  }

  #writeOnce(): void {
    if (!this.#socket.writableNeedDrain) this.#writeInTurn()
    if (this.#frames.bytes === 0) return
    const ended = this.#ending
    if (ended.length === 0) return this.#frames.write(undefined)
    this.#ending = []
    this.#frames.write(() => {
      for (const stream of ended) this.#events.onSent(stream)
    })
  }

  get #canWriteMore(): boolean {
    return this.#queue.length > 0 && this.#window > 0 && !this.#socket.writableNeedDrain
  }

  /** Adds one frame of each stream in turn, as long as there is room. */
  #writeInTurn(): void {
    let blocked = 0
    while (blocked < this.#queue.length && this.#frames.bytes < WRITE_BYTES) {
      const stream = this.#queue.shift()
      if (!stream) return
      // Before the write, which may make room for more output and put the stream in the queue again.
      stream.isQueued = false
      if (!this.#writeFrame(stream)) continue
      // Not scheduled, because a window update or `drain` of the socket schedules the next write.
      if (stream.isOpen) this.#addToQueue(stream)
      // The window of the connection is used up: only heads can be sent.
      if (this.#window <= 0) blocked++
    }
  }

  /** Returns whether the stream has more to send, and a window for it. */
  #writeFrame(stream: Stream): boolean {
    const { response } = stream
    const { isLast } = response
    const fields = response.takeHead()
    const hasTrailers = response.trailers.length > 0
    if (fields) {
      const ends = isLast && response.pendingBytes === 0 && !hasTrailers
      this.#sendFields(stream, response.statusCode, fields, ends)
      if (ends) {
        this.#end(stream, 0)
        return false
      }
    }
    const streamWindow = this.#windowOf(stream)
    const { pendingBytes } = response
    const bytes = Math.max(0, Math.min(pendingBytes, streamWindow, this.#window, MAX_FRAME_BYTES))
    const isAll = bytes === pendingBytes
    const ends = isAll && isLast && !hasTrailers
    if (bytes > 0 || ends) this.#sendBody(stream, bytes, ends)
    stream.windowDifference -= bytes
    if (ends) this.#end(stream, bytes)
    else if (isAll && response.isTruncated) this.#events.onTruncated(stream)
    else if (isAll && isLast) {
      this.#sendFields(stream, undefined, response.trailers, true)
      this.#end(stream, bytes)
    } else {
      if (bytes > 0) response.onWritten()
      if (streamWindow > bytes) return response.pendingBytes > 0
      response.detachPending()
    }
    return false
  }

  #end(stream: Stream, bytes: number): void {
    stream.response.onEndWritten(bytes)
    this.#ending.push(stream)
    this.#events.onLocalEnd(stream)
  }

  #sendBody({ id, response }: Stream, bytes: number, ends: boolean): void {
    this.#hasResponded = true
    this.#frames.pushData(id, response, bytes, ends)
    this.#window -= bytes
  }

  #sendFields({ id }: Stream, status: number | undefined, fields: readonly string[], ends: boolean): void {
    this.#hasResponded = true
    this.#frames.pushFields(id, this.#encoder.encode(FRAME_HEAD_BYTES, status, fields), ends)
  }

  /** The connection has closed: nothing more goes out. */
  drop(): void {
    for (const stream of this.#ending.splice(0)) this.#events.onSent(stream)
  }

  /** Sends the reset of a stream. */
  sendReset(id: number, code: number): void {
    this.send(numbersFrame(frameTypes.rstStream, 0, id, code))
  }
}
