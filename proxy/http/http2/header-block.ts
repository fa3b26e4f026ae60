import { ConnectionError, errorCodes, flags, MAX_FRAME_BYTES } from './frames.ts'

/** A block may have this many times the maximum bytes of the headers: to answer that they are too large, it must be decoded. */
const SLACK = 4
const PRIORITY_BYTES = 5
/** Memory for what blocks of all connections have over their maximum. */
const MAX_OVERSIZE_BYTES = 16 * 1024 * 1024

const nothing: Buffer = Buffer.alloc(0)

/**
 * Memory shared by the incomplete blocks of all connections beyond the maximum header bytes. A block that long almost always belongs to a
 * request that is answered with 431, so it is not worth the memory that ten thousand clients could take with it.
 */
export class OversizeMemory {
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /** Returns false if there is not enough left. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > MAX_OVERSIZE_BYTES) return false
    this.#bytes += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.#bytes -= bytes
  }
}

/** A header block as it arrives, in one frame or several (RFC 9113 section 4.3). */
export class HeaderBlock {
  readonly #maxBytes: number
  /** Bytes that each connection may use without taking from the shared memory. */
  readonly #maxUsualBytes: number
  readonly #oversizeMemory: OversizeMemory
  /** Bytes taken from the shared memory. */
  #oversizeBytes = 0
  /** The received bytes, copied into one buffer: in a buffer of its own, a frame of one byte would take a hundred. */
  #room = nothing
  #bytes = 0
  /** Whether a block has begun whose last frame has not arrived. */
  isOpen = false
  stream = 0
  endsStream = false

  /** @param oversizeMemory shared by all connections */
  constructor(maxHeaderBytes: number, oversizeMemory = new OversizeMemory()) {
    this.#maxBytes = SLACK * maxHeaderBytes
    this.#maxUsualBytes = Math.max(maxHeaderBytes, MAX_FRAME_BYTES)
    this.#oversizeMemory = oversizeMemory
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
      const max = needed > this.#maxUsualBytes ? this.#maxBytes : this.#maxUsualBytes
      const bytes = Math.min(Math.max(needed, 2 * this.#room.length), max)
      this.#takeOversize(Math.max(0, bytes - this.#maxUsualBytes))
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
    this.#oversizeMemory.giveBack(this.#oversizeBytes)
    this.#oversizeBytes = 0
  }

  /** @param bytes that it has beyond its own memory from now on @throws {ConnectionError} */
  #takeOversize(bytes: number): void {
    if (!this.#oversizeMemory.take(bytes - this.#oversizeBytes))
      throw new ConnectionError(errorCodes.enhanceYourCalm, 'too many oversized header blocks')
    this.#oversizeBytes = bytes
  }
}
