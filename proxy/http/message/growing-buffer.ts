const nothing = Buffer.alloc(0)
const MIN_ROOM_BYTES = 256

/**
 * A buffer that doubles when it is full, for the received part of a line, a head or a body. Appending bytes one by one costs no more than
 * appending many at once.
 */
export class GrowingBuffer {
  #room: Buffer = nothing
  #length = 0

  get length(): number {
    return this.#length
  }

  append(bytes: Buffer): void {
    const needed = this.#length + bytes.length
    if (needed > this.#room.length) {
      const room = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#room.length, MIN_ROOM_BYTES))
      this.#room.copy(room, 0, 0, this.#length)
      this.#room = room
    }
    bytes.copy(this.#room, this.#length)
    this.#length = needed
  }

  /** The bytes appended so far; valid until more are appended. */
  get bytes(): Buffer {
    return this.#room.subarray(0, this.#length)
  }

  /** Returns the first bytes, at most `length`, one character per byte. */
  prefix(length: number): string {
    return this.#room.toString('latin1', 0, Math.min(length, this.#length))
  }

  /** Takes out all bytes, one character a byte. */
  take(): string {
    const text = this.#room.toString('latin1', 0, this.#length)
    this.clear()
    return text
  }

  clear(): void {
    this.#room = nothing
    this.#length = 0
  }
}
