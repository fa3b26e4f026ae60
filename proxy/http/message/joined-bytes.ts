/** Parts of at least this length are passed on separately, because copying them would cost more. */
export const MIN_SEPARATE_BYTES = 4 * 1024
const FIRST_ROOM_BYTES = 256
/** Up to this length, copying in a loop is cheaper than a call. */
const SHORT_BYTES = 32

const nothing = Buffer.alloc(0)

/** Joins small parts of one read, so that later steps cost the same no matter how small the parts are. A single part is not copied. */
export class JoinedBytes {
  /** The buffer that contains the only part. */
  #source: Buffer = nothing
  #from = 0
  /** The buffer that several parts have been copied to. */
  #room: Buffer | undefined
  #length = 0

  get isEmpty(): boolean {
    return this.#length === 0
  }

  /** @param bytes must not be written to before `take` */
  add(bytes: Buffer, from: number, to: number): void {
    if (from === to) return
    if (this.#length === 0) {
      this.#source = bytes
      this.#from = from
    } else {
      if (!this.#room) this.#begin(to - from)
      this.#append(bytes, from, to)
    }
    this.#length += to - from
  }

  /** Takes out all bytes. A copy takes at most twice their memory; a single part keeps the buffer that it was added from. */
  take(): Buffer {
    const [length, room, source] = [this.#length, this.#room, this.#source]
    this.#length = 0
    this.#room = undefined
    this.#source = nothing
    if (room) return room.subarray(0, length)
    return length === source.length ? source : source.subarray(this.#from, this.#from + length)
  }

  /** Copies the first part when a second one follows. */
  #begin(more: number): void {
    const [from, length] = [this.#from, this.#length]
    this.#room = Buffer.allocUnsafe(Math.max(FIRST_ROOM_BYTES, length + more))
    this.#source.copy(this.#room, 0, from, from + length)
    this.#source = nothing
  }

  #append(bytes: Buffer, from: number, to: number): void {
    const length = this.#length
    let room = this.#room ?? nothing
    const needed = length + to - from
    if (needed > room.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * room.length))
      room.copy(larger, 0, 0, length)
      this.#room = room = larger
    }
    if (to - from > SHORT_BYTES) bytes.copy(room, length, from, to)
    else for (let i = from; i < to; i++) room[length + i - from] = bytes[i] ?? 0
  }
}
