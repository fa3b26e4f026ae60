const nothing = Buffer.alloc(0)
const MIN_ROOM_BYTES = 256

/** The bytes of an unfinished element, in one buffer that doubles as it fills: single bytes cost no more than many. */
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

  /** All of them, until more are appended. */
  get bytes(): Buffer {
    return this.#room.subarray(0, this.#length)
  }

  /** The first of them, one character a byte. */
  prefix(length: number): string {
    return this.#room.toString('latin1', 0, Math.min(length, this.#length))
  }

  /** All of them, one character a byte. Nothing is held any more. */
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
