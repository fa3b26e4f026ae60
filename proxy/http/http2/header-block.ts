import { ConnectionError, errorCodes, flags, MAX_FRAME_BYTES } from './frames.ts'

/** A block may have this many times the maximum bytes of the headers: to answer that they are too large, it must be decoded. */
const SLACK = 4
const PRIORITY_BYTES = 5
/** Memory for what blocks of all connections have over their maximum. */
const MAX_LONG_BYTES = 16 * 1024 * 1024

const nothing: Buffer = Buffer.alloc(0)

/**
 * The memory that incomplete blocks of all connections take beyond the maximum bytes of the headers. A block that long is almost always
 * that of a request that is answered with 431, so it is worth less than the memory that ten thousand clients can take with it.
 */
export class LongBlocks {
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /** Returns false if there is not enough left. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > MAX_LONG_BYTES) return false
    this.#bytes += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.#bytes -= bytes
  }
}

/** The header block that arrives on a connection, of one frame or of several (RFC 9113 section 4.3). */
export class HeaderBlock {
  readonly #maxBytes: number
  /** So much it may have without taking from the long ones. */
  readonly #usualBytes: number
  readonly #longBlocks: LongBlocks
  /** So much it has taken from them. */
  #longBytes = 0
  /** The received bytes, copied into one buffer: in a buffer of its own, a frame of one byte would take a hundred. */
  #room = nothing
  #bytes = 0
  /** It has begun, and its last frame has not arrived. */
  isOpen = false
  stream = 0
  endsStream = false

  /** @param longBlocks those of all connections that share a memory */
  constructor(maxHeaderBytes: number, longBlocks = new LongBlocks()) {
    this.#maxBytes = SLACK * maxHeaderBytes
    this.#usualBytes = Math.max(maxHeaderBytes, MAX_FRAME_BYTES)
    this.#longBlocks = longBlocks
  }

  /** Begins with the payload of a HEADERS frame. @throws {ConnectionError} */
  begin(stream: number, flagBits: number, payload: Buffer): void {
    const isPadded = (flagBits & flags.padded) !== 0
    const start = (isPadded ? 1 : 0) + ((flagBits & flags.priority) !== 0 ? PRIORITY_BYTES : 0)
    if (start > payload.length)
      throw new ConnectionError(errorCodes.frameSizeError, 'HEADERS frame too short for its flags')
    const end = payload.length - (isPadded ? (payload[0] ?? 0) : 0)
    if (start > end) throw new ConnectionError(errorCodes.protocolError, 'padding longer than its frame')
    this.isOpen = true
    this.stream = stream
    this.endsStream = (flagBits & flags.endStream) !== 0
    this.#bytes = end - start
    const fragment = payload.subarray(start, end)
    this.#room = (flagBits & flags.endHeaders) === 0 ? Buffer.from(fragment) : fragment
  }

  /** @param payload of a CONTINUATION frame @throws {ConnectionError} */
  add(payload: Buffer): void {
    const needed = this.#bytes + payload.length
    if (needed > this.#maxBytes)
      throw new ConnectionError(errorCodes.enhanceYourCalm, 'header block too large')
    if (needed > this.#room.length) {
      const most = needed > this.#usualBytes ? this.#maxBytes : this.#usualBytes
      const bytes = Math.min(Math.max(needed, 2 * this.#room.length), most)
      this.#takeLong(Math.max(0, bytes - this.#usualBytes))
      const room = Buffer.allocUnsafeSlow(bytes)
      this.#room.copy(room, 0, 0, this.#bytes)
      this.#room = room
    }
    payload.copy(this.#room, this.#bytes)
    this.#bytes = needed
  }

  /** Takes out the complete block. */
  take(): Buffer {
    const whole = this.#room.subarray(0, this.#bytes)
    this.isOpen = false
    this.drop()
    return whole
  }

  /** Gives its memory back. Its connection has closed. */
  drop(): void {
    this.#room = nothing
    this.#longBlocks.giveBack(this.#longBytes)
    this.#longBytes = 0
  }

  /** @param bytes that it has of the long ones from now on @throws {ConnectionError} */
  #takeLong(bytes: number): void {
    if (!this.#longBlocks.take(bytes - this.#longBytes))
      throw new ConnectionError(errorCodes.enhanceYourCalm, 'too many oversized header blocks')
    this.#longBytes = bytes
  }
}
