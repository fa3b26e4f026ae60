import { ByteQueue } from '../message/byte-queue.ts'
import type { ClientRequest } from '../message/client-request.ts'
import { ClientResponse } from '../message/client-response.ts'
import { currentDate } from '../message/date.ts'
import { detachBuffer } from '../message/detach-buffer.ts'

/** The stream of a response. */
export type ResponseStream = {
  /** Whether so much output of the connection is pending that the client seems not to read. */
  readonly isBacklogged: boolean
  /** The response has data to send. */
  enqueue(): void
  /** Sends an interim response. */
  sendInterimResponse(status: number, fields: readonly string[]): void
  /** Resets the stream, as the response cannot be completed. */
  reset(): void
  /** Closes the connection. */
  destroyConnection(): void
}

/** With more bytes pending, `write` returns false. This is the size of one read from a backend. */
const MAX_PENDING_BYTES = 16 * 1024

const nothing: readonly string[] = []

/** The response on an HTTP/2 stream. All data of one turn of the event loop is sent together, in as few frames as possible. */
export class Http2Response extends ClientResponse {
  readonly shouldKeepAlive = true
  readonly #stream: ResponseStream
  #fields: readonly string[] = nothing
  #trailers: readonly string[] = nothing
  #isHeadDue = false
  /** The head is set, but not written yet. */
  #isHeadPending = false
  /** The rest of a partly sent piece, which is sent first. */
  #part: Buffer | undefined
  /** Pieces pending for longer than a turn, detached from the buffers that they were read into: sent next. */
  #detached: ByteQueue | undefined
  #pieces: Buffer[] = []
  #firstPiece = 0
  #pendingBytes = 0
  /** Bytes in the last frames of the response, which the operating system has not taken yet. */
  #unflushedBytes = 0
  #needsDrain = false
  #isTruncated = false
  /** The last frames are written, and the operating system has not taken them yet. */
  #isEndWritten = false

  constructor(stream: ResponseStream, request: ClientRequest) {
    super(request)
    this.#stream = stream
  }

  override get writableLength(): number {
    return this.#pendingBytes + this.#unflushedBytes
  }

  override get writableNeedDrain(): boolean {
    return this.#needsDrain
  }

  override writeHead(status: number, fields: readonly string[]): void {
    if (this.headersSent) return
    this.headersSent = true
    this.statusCode = status
    this.#isHeadPending = true
    this.#fields = fields.some((name, i) => i % 2 === 0 && name === 'date')
      ? fields
      : [...fields, 'date', currentDate()]
  }

  override flushHead(): void {
    if (!this.#isHeadPending || this.#isHeadDue) return
    this.#isHeadDue = true
    this.#stream.enqueue()
  }

  override write(piece: Buffer): boolean {
    if (this.destroyed || this.writableEnded) return true
    this.#push(piece)
    this.#stream.enqueue()
    if (this.#pendingBytes > MAX_PENDING_BYTES) this.#needsDrain = true
    return !this.#needsDrain
  }

  override end(last?: Buffer): void {
    if (this.destroyed || this.writableEnded) return
    this.writableEnded = true
    if (last) this.#push(last)
    this.#stream.enqueue()
  }

  #push(piece: Buffer): void {
    if (piece.length === 0) return
    this.#pieces.push(piece)
    this.#pendingBytes += piece.length
  }

  override addTrailers(fields: readonly string[]): void {
    this.#trailers = fields
  }

  override writeContinue(): void {
    if (this.headersSent || this.destroyed) return
    this.#stream.sendInterimResponse(100, nothing)
  }

  override writeInterimResponse(status: number, fields: readonly string[]): void {
    if (this.headersSent || this.destroyed || this.#stream.isBacklogged) return
    this.#stream.sendInterimResponse(status, fields)
  }

  /** `AnsweredStreams` asks the client not to send the rest of a request whose response is complete. */
  override closeIfBodyUnread(): void {}

  override closeAfterResponse(): void {}

  override truncate(): void {
    this.#isTruncated = true
    if (!this.destroyed) this.#stream.enqueue()
  }

  override abort(): void {
    if (this.destroyed) return
    // The last frame is written already, and the client has not read it: a reset would come too late.
    if (this.#isEndWritten) this.destroyConnection()
    else this.#stream.reset()
  }

  override destroyConnection(): void {
    this.#stream.destroyConnection()
  }

  /** Takes out the head, if it was set and not written. */
  takeHead(): readonly string[] | undefined {
    if (!this.#isHeadPending) return undefined
    this.#isHeadPending = false
    const fields = this.#fields
    this.#fields = nothing
    return fields
  }

  /** Bytes of the body that are not written to a frame yet. */
  get pendingBytes(): number {
    return this.#pendingBytes
  }

  /** Whether the pending pieces are the end of the body. */
  get isLast(): boolean {
    return this.writableEnded && !this.#isTruncated
  }

  /** Whether nothing more will be written, and the client must see that the response is truncated. */
  get isTruncated(): boolean {
    return this.#isTruncated
  }

  get trailers(): readonly string[] {
    return this.#trailers
  }

  /** Takes out pending bytes of the body, and appends them to `target`. @param bytes at most `pendingBytes` */
  takeBody(bytes: number, target: Buffer[]): void {
    this.#pendingBytes -= bytes
    this.framedBytes += bytes
    let left = bytes
    while (left > 0) {
      const piece = this.#shiftPiece()
      if (!piece) return
      if (piece.length > left) {
        target.push(piece.subarray(0, left))
        this.#part = piece.subarray(left)
        return
      }
      target.push(piece)
      left -= piece.length
    }
  }

  #shiftPiece(): Buffer | undefined {
    const first = this.#part ?? this.#detached?.shift()
    this.#part = undefined
    if (first) return first
    const piece = this.#pieces[this.#firstPiece]
    this.#pieces[this.#firstPiece++] = noBytes
    if (this.#firstPiece >= this.#pieces.length) this.#clearPieces()
    return piece
  }

  #clearPieces(): void {
    this.#pieces = []
    this.#firstPiece = 0
  }

  /** Copies pending pieces out of shared buffers, because they stay pending for longer than this turn. */
  detachPending(): void {
    if (this.#pieces.length > 0 && this.#part === undefined && !this.#detached?.bytes)
      this.#part = this.#shiftPiece()
    if (this.#part) this.#part = detachBuffer(this.#part)
    if (this.#pieces.length === 0) return
    this.#detached ??= new ByteQueue()
    for (let at = this.#firstPiece; at < this.#pieces.length; at++)
      this.#detached.push(this.#pieces[at] ?? noBytes)
    this.#clearPieces()
  }

  /** Called when some of the pending data has been written: calls `onDrain` if there is room again. */
  onWritten(): void {
    if (!this.#needsDrain || this.#pendingBytes > MAX_PENDING_BYTES / 2) return
    this.#needsDrain = false
    this.onDrain?.()
  }

  /** The end has been written. @param bytes of the body in the last frames, which the operating system has not taken yet */
  onEndWritten(bytes: number): void {
    this.#isEndWritten = true
    this.#unflushedBytes = bytes
  }

  /** Calls `onClose`: the response was handed to the operating system, or its stream was reset. */
  markClosed(): void {
    this.#part = this.#detached = undefined
    this.#clearPieces()
    this.#pendingBytes = this.#unflushedBytes = 0
    this.close()
  }
}

const noBytes = Buffer.alloc(0)
