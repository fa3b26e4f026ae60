import { detachBuffer } from './detach-buffer.ts'

/** Shorter pieces are copied, because a slice of a few bytes would keep the whole buffer of its read alive. */
const MIN_UNCOPIED_BYTES = 4 * 1024
const ROOM_BYTES = 4 * 1024
/** How many empty places the array may begin with before it is shortened, in a queue that is never empty. */
const MAX_PLACES_LEFT = 1024

/** A first-in, first-out queue of pending bytes. No matter how small the pieces are, it takes little more memory than their bytes. */
export class ByteQueue {
  #pieces: Buffer[] = []
  #first = 0
  #bytes = 0
  /** The buffer that short pieces are copied to. */
  #room: Buffer | undefined
  #roomStart = 0
  #roomEnd = 0

  get bytes(): number {
    return this.#bytes
  }

  get isEmpty(): boolean {
    return this.#bytes === 0
  }

  /** @param piece not empty; must not be written to afterwards */
  push(piece: Buffer): void {
    this.#bytes += piece.length
    if (piece.length >= MIN_UNCOPIED_BYTES) {
      this.#endRoom()
      this.#pieces.push(detachBuffer(piece))
      return
    }
    let at = 0
    while (at < piece.length) at += this.#copy(piece, at)
  }

  /** Takes out the first piece. */
  shift(): Buffer | undefined {
    const piece = this.#pieces[this.#first]
    if (!piece) return undefined
    this.#pieces[this.#first++] = nothing
    this.#bytes -= piece.length
    if (this.#first === this.#pieces.length) {
      this.#pieces = []
      this.#first = 0
      this.#endRoom()
    } else if (this.#first === MAX_PLACES_LEFT) {
      this.#pieces.splice(0, this.#first)
      this.#first = 0
    }
    return piece
  }

  clear(): void {
    this.#pieces = []
    this.#first = 0
    this.#bytes = 0
    this.#room = undefined
    this.#roomStart = this.#roomEnd = 0
  }

  /** Copies as many bytes as fit into the buffer. Returns how many. */
  #copy(piece: Buffer, from: number): number {
    if (this.#room === undefined || this.#roomEnd === this.#room.length) {
      this.#endRoom()
      this.#room = Buffer.allocUnsafeSlow(ROOM_BYTES)
      this.#roomStart = this.#roomEnd = 0
    }
    const copied = piece.copy(this.#room, this.#roomEnd, from)
    const isNew = this.#roomStart === this.#roomEnd
    this.#roomEnd += copied
    const filled = this.#room.subarray(this.#roomStart, this.#roomEnd)
    if (isNew) this.#pieces.push(filled)
    else this.#pieces[this.#pieces.length - 1] = filled
    return copied
  }

  /** The next copy starts a new piece. */
  #endRoom(): void {
    this.#roomStart = this.#roomEnd
  }
}

const nothing = Buffer.alloc(0)
