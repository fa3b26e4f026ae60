import { ConnectionError, errorCodes, flags } from './frames.ts'

/** A block may have this many times the maximum bytes of the headers: to answer that they are too large, it must be decoded. */
const SLACK = 4
const PRIORITY_BYTES = 5

const nothing: Buffer = Buffer.alloc(0)

/** The header block that arrives on a connection, of one frame or of several (RFC 9113 section 4.3). */
export class HeaderBlock {
  readonly #maxBytes: number
  /** The received bytes, copied into one buffer: in a buffer of its own, a frame of one byte would take a hundred. */
  #room = nothing
  #bytes = 0
  /** It has begun, and its last frame has not arrived. */
  isOpen = false
  stream = 0
  endsStream = false

  constructor(maxHeaderBytes: number) {
    this.#maxBytes = SLACK * maxHeaderBytes
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
      const room = Buffer.allocUnsafeSlow(Math.min(Math.max(needed, 2 * this.#room.length), this.#maxBytes))
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
    this.#room = nothing
    return whole
  }
}
