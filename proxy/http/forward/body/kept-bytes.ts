import { WaitingBytes } from '../../message/waiting-bytes.ts'

/** Of one body. */
const MAX_KEPT = 64 * 1024
/** Limit for all bodies together. Beyond it, bytes are not kept. */
const MAX_KEPT_TOTAL = 16 * 1024 * 1024
let keptTotal = 0

/**
 * The sent part of a body whose request the backend may not have started. All but the first piece are copied to one
 * another: a piece of one byte takes a hundred beside its own, and may keep all of the read that it came with.
 */
export class KeptBytes {
  #first: Buffer | undefined
  #later: WaitingBytes | undefined
  #bytes = 0

  /**
   * @param piece in memory of its own, that is not written to any more
   * @returns whether there was room. If not, nothing is kept any more
   */
  add(piece: Buffer): boolean {
    if (this.#bytes + piece.length > MAX_KEPT || keptTotal + piece.length > MAX_KEPT_TOTAL) {
      this.release()
      return false
    }
    this.#bytes += piece.length
    keptTotal += piece.length
    if (this.#first) (this.#later ??= new WaitingBytes()).append(piece)
    else this.#first = piece
    return true
  }

  /** All of it, in the order in which it was added. */
  get pieces(): readonly Buffer[] {
    return [this.#first, this.#later?.bytes].filter((piece) => piece !== undefined)
  }

  /** Nothing is kept any more. */
  release(): void {
    keptTotal -= this.#bytes
    this.#bytes = 0
    this.#first = this.#later = undefined
  }
}
