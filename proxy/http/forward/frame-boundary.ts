/** Header, extended length and mask together (RFC 6455 section 5.2). */
const MAX_HEAD_BYTES = 14

/**
 * Follows one direction of a WebSocket, and knows whether the forwarded bytes end with a complete frame. Only there can the gateway insert
 * a frame (RFC 6455 section 5.4 allows control frames between the fragments of a message). Reads only the parts of frame headers that are
 * needed to find the next frame.
 */
export class FrameBoundary {
  readonly #head = Buffer.alloc(MAX_HEAD_BYTES)
  #headBytes = 0
  /** Bytes left of the frame whose head has been read. */
  #left = 0

  /** The bytes forwarded so far end with a complete frame, or nothing was forwarded. */
  get isReached(): boolean {
    return this.#headBytes === 0 && this.#left === 0
  }

  pass(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length) {
      if (this.#left > 0) {
        const skipped = Math.min(this.#left, chunk.length - at)
        this.#left -= skipped
        at += skipped
        continue
      }
      this.#head[this.#headBytes++] = chunk[at++] ?? 0
      if (this.#headBytes < 2 || this.#headBytes < this.#headLength()) continue
      this.#left = this.#payloadLength()
      this.#headBytes = 0
    }
  }

  #headLength(): number {
    const second = this.#head.readUInt8(1)
    const length = second & 0x7f
    return 2 + (length === 127 ? 8 : length === 126 ? 2 : 0) + (second & 0x80 ? 4 : 0)
  }

  #payloadLength(): number {
    const length = this.#head.readUInt8(1) & 0x7f
    if (length === 126) return this.#head.readUInt16BE(2)
    // Beyond 2^53, the exact number does not matter, because such a frame never ends.
    return length === 127 ? Number(this.#head.readBigUInt64BE(2)) : length
  }
}
