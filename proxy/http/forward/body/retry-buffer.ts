import { GrowingBuffer } from '../../message/growing-buffer.ts'
import { BodyMemory } from './body-memory.ts'

/** Bytes kept of one body. */
const MAX_BYTES = 64 * 1024
/** Bytes of all bodies together. One client may use half of them. */
const TOTAL_BYTES = 16 * 1024 * 1024
const memory = new BodyMemory(TOTAL_BYTES, TOTAL_BYTES)

/**
 * Keeps the sent part of a body while its request may have to be sent again because the backend has not begun with it. All but the first
 * piece are copied into one buffer: a piece of one byte takes a hundred bytes in a buffer of its own, and may keep the whole buffer of its
 * read alive.
 */
export class RetryBuffer {
  readonly #client: string
  #first: Buffer | undefined
  #later: GrowingBuffer | undefined
  #bytes = 0

  /** @param client whose share of the memory is used */
  constructor(client: string) {
    this.#client = client
  }

  /**
   * @param piece detached from shared buffers; must not be written to afterwards
   * @returns whether the piece fits; if not, the whole buffer is released
   */
  add(piece: Buffer): boolean {
    if (this.#bytes + piece.length > MAX_BYTES || !memory.reserve(this.#client, piece.length)) {
      this.release()
      return false
    }
    this.#bytes += piece.length
    if (this.#first) (this.#later ??= new GrowingBuffer()).append(piece)
    else this.#first = piece
    return true
  }

  /** The kept pieces, in the order in which they were added. */
  get pieces(): readonly Buffer[] {
    return [this.#first, this.#later?.bytes].filter((piece) => piece !== undefined)
  }

  /** Frees the buffered bytes. */
  release(): void {
    memory.release(this.#client, this.#bytes)
    this.#bytes = 0
    this.#first = this.#later = undefined
  }
}
