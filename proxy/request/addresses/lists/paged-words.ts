/**
 * A table of 32-bit words that grows in place. A large one has pages of the system of its own, so that nothing is copied when it grows, and
 * all of it goes back to the system when it is released. The C library's allocator keeps freed memory: with it, a list of 32 MB that was
 * reloaded left 200 MB behind. A small one is an ordinary array: a process can have no more than 65,530 mappings.
 */
export class PagedWords {
  readonly #buffer: ArrayBuffer
  /** Follows the length of the buffer. Made with a length of its own, a large one would be read five times as slowly. */
  readonly words: Uint32Array<ArrayBuffer>

  /** @param maxWords of a large table, address space that is reserved */
  constructor(maxWords: number) {
    const maxBytes = maxWords * BYTES
    this.#buffer =
      maxBytes <= SMALL_BYTES ? new ArrayBuffer(maxBytes) : new ArrayBuffer(0, { maxByteLength: maxBytes })
    this.words = new Uint32Array(this.#buffer)
  }

  /** Makes room for so many words. */
  reserve(count: number): void {
    if (count <= this.words.length) return
    const larger = Math.max(count, 2 * this.words.length, FIRST_WORDS)
    this.#buffer.resize(Math.min(larger * BYTES, this.#buffer.maxByteLength))
  }

  /** Keeps so many words, and gives the memory of the others back. */
  truncate(count: number): Uint32Array<ArrayBuffer> {
    if (!this.#buffer.resizable) return this.words.slice(0, count)
    this.#buffer.resize(count * BYTES)
    return this.words
  }
}

const BYTES = 4
const SMALL_BYTES = 64 * 1024
const FIRST_WORDS = 1024
