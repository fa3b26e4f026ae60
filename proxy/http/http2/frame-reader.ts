import {
  ConnectionError,
  errorCodes,
  flags,
  FRAME_HEAD_BYTES,
  frameTypes,
  MAX_FRAME_BYTES,
} from './frames.ts'
import { http2Preface } from '../message/http2-preface.ts'

/** Receives the frames of a connection. Called synchronously from `read`, in order. */
export type FrameSink = {
  /** A frame of any type but DATA. @param payload valid only during the call */
  onFrame(type: number, flagBits: number, stream: number, payload: Buffer): void
  /** A DATA frame begins. @param length of its payload, including the padding */
  onDataFrame(flagBits: number, stream: number, length: number): void
  /** Content of the DATA frame that has begun, at least one byte. */
  onData(bytes: Buffer, from: number, to: number): void
  /** The DATA frame that has begun is complete. */
  onDataEnd(): void
  /** Whether no more frames are accepted. */
  readonly isClosed: boolean
}

const inPreface = 0
const inHead = 1
const inPayload = 2
const inPadLength = 3
const inData = 4
const inPadding = 5

const FIRST_PAYLOAD_BYTES = 512
const nothing = Buffer.alloc(0)

/**
 * Reads the frames of a connection in whatever pieces they arrive (RFC 9113 section 4.1). The content of DATA is passed on as it arrives.
 * At most one frame of another type is buffered, and each byte is copied at most twice, no matter how small the pieces are.
 */
export class FrameReader {
  readonly #sink: FrameSink
  #state = inPreface
  /** Bytes received of the preface, of a frame's head, or of its payload. */
  #have = 0
  /** Not a part of Node's pool for short buffers, of which each connection would keep 64 KiB in memory. */
  readonly #head = Buffer.allocUnsafeSlow(FRAME_HEAD_BYTES)
  #payload: Buffer = nothing
  #type = 0
  #flags = 0
  #stream = 0
  /** Length of the payload; for DATA, the bytes of content or padding that have not arrived. */
  #left = 0
  #padding = 0

  constructor(sink: FrameSink) {
    this.#sink = sink
  }

  /** A frame other than DATA is incomplete. DATA is passed on as it arrives. */
  get isWithinFrame(): boolean {
    return this.#state === inPayload || (this.#state <= inHead && this.#have > 0)
  }

  /** @throws {ConnectionError} */
  read(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length && !this.#sink.isClosed) {
      switch (this.#state) {
        case inPreface:
          at = this.#readPreface(chunk, at)
          break
        case inHead:
          at = this.#readHead(chunk, at)
          break
        case inPayload:
          at = this.#readPayload(chunk, at)
          break
        case inPadLength:
          this.#readPadLength(chunk[at++] ?? 0)
          break
        case inData:
          at = this.#readData(chunk, at)
          break
        default:
          at = this.#skipPadding(chunk, at)
      }
    }
  }

  #readPreface(chunk: Buffer, from: number): number {
    const bytes = Math.min(chunk.length - from, http2Preface.length - this.#have)
    if (chunk.compare(http2Preface, this.#have, this.#have + bytes, from, from + bytes) !== 0)
      throw new ConnectionError(errorCodes.protocolError, 'missing or invalid HTTP/2 connection preface')
    this.#have += bytes
    if (this.#have === http2Preface.length) this.#beginHead()
    return from + bytes
  }

  #beginHead(): void {
    this.#state = inHead
    this.#have = 0
  }

  #readHead(chunk: Buffer, from: number): number {
    if (this.#have === 0 && chunk.length - from >= FRAME_HEAD_BYTES) {
      this.#begin(chunk, from)
      return from + FRAME_HEAD_BYTES
    }
    const copied = chunk.copy(this.#head, this.#have, from, from + FRAME_HEAD_BYTES - this.#have)
    this.#have += copied
    if (this.#have === FRAME_HEAD_BYTES) this.#begin(this.#head, 0)
    return from + copied
  }

  #begin(head: Buffer, at: number): void {
    const length = head.readUIntBE(at, 3)
    this.#type = head[at + 3] ?? 0
    this.#flags = head[at + 4] ?? 0
    this.#stream = head.readUInt32BE(at + 5) & 0x7fff_ffff
    if (length > MAX_FRAME_BYTES)
      throw new ConnectionError(errorCodes.frameSizeError, 'frame larger than SETTINGS_MAX_FRAME_SIZE')
    this.#left = length
    if (this.#type === frameTypes.data) this.#beginData(length)
    else if (length === 0) this.#endPayload(nothing)
    else {
      this.#state = inPayload
      this.#have = 0
    }
  }

  #readPayload(chunk: Buffer, from: number): number {
    if (this.#have === 0 && chunk.length - from >= this.#left) {
      const end = from + this.#left
      this.#endPayload(chunk.subarray(from, end))
      return end
    }
    const bytes = Math.min(chunk.length - from, this.#left - this.#have)
    const needed = this.#have + bytes
    if (needed > this.#payload.length) {
      const room = Math.max(needed, 2 * this.#payload.length, FIRST_PAYLOAD_BYTES)
      const larger = Buffer.allocUnsafeSlow(Math.min(room, this.#left))
      this.#payload.copy(larger, 0, 0, this.#have)
      this.#payload = larger
    }
    chunk.copy(this.#payload, this.#have, from, from + bytes)
    this.#have = needed
    if (needed === this.#left) {
      const payload = this.#payload.subarray(0, needed)
      this.#payload = nothing
      this.#endPayload(payload)
    }
    return from + bytes
  }

  #endPayload(payload: Buffer): void {
    this.#beginHead()
    this.#sink.onFrame(this.#type, this.#flags, this.#stream, payload)
  }

  #beginData(length: number): void {
    const isPadded = (this.#flags & flags.padded) !== 0
    if (isPadded && length === 0)
      throw new ConnectionError(errorCodes.frameSizeError, 'padded DATA frame without a pad length')
    this.#padding = 0
    this.#sink.onDataFrame(this.#flags, this.#stream, length)
    if (isPadded) {
      this.#state = inPadLength
      this.#left--
    } else this.#beginContent()
  }

  #readPadLength(padding: number): void {
    if (padding > this.#left)
      throw new ConnectionError(errorCodes.protocolError, 'padding longer than its frame')
    this.#padding = padding
    this.#left -= padding
    this.#beginContent()
  }

  #beginContent(): void {
    this.#state = inData
    if (this.#left === 0) this.#beginPadding()
  }

  #readData(chunk: Buffer, from: number): number {
    const end = from + Math.min(chunk.length - from, this.#left)
    this.#left -= end - from
    this.#sink.onData(chunk, from, end)
    if (this.#left === 0) this.#beginPadding()
    return end
  }

  #beginPadding(): void {
    this.#state = inPadding
    this.#left = this.#padding
    if (this.#left === 0) this.#endData()
  }

  #skipPadding(chunk: Buffer, from: number): number {
    const bytes = Math.min(chunk.length - from, this.#left)
    this.#left -= bytes
    if (this.#left === 0) this.#endData()
    return from + bytes
  }

  #endData(): void {
    this.#beginHead()
    this.#sink.onDataEnd()
  }
}
