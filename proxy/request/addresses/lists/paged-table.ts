type Column = Uint32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>

/**
 * A column of numbers that grows in place. A large one uses pages of its own, so that nothing is copied when it grows, and all of it
 * returns to the system when it is released. The C library's allocator keeps freed memory: with it, a list of 32 MB that was reloaded
 * left 200 MB behind. A small one is an ordinary array: a process can have no more than 65,530 mappings.
 */
export class PagedTable<Values extends Column> {
  readonly #buffer: ArrayBuffer
  /** Follows the length of the buffer: an array created with a length of its own would be read five times as slowly if it is large. */
  readonly values: Values

  /**
   * @param Values the kind of numbers
   * @param maxLength of a large table, address space that is reserved
   */
  constructor(
    Values: { new (buffer: ArrayBuffer): Values; readonly BYTES_PER_ELEMENT: number },
    maxLength: number,
  ) {
    const maxBytes = maxLength * Values.BYTES_PER_ELEMENT
    this.#buffer =
      maxBytes <= SMALL_BYTES ? new ArrayBuffer(maxBytes) : new ArrayBuffer(0, { maxByteLength: maxBytes })
    this.values = new Values(this.#buffer)
  }

  /** Makes room for so many numbers. */
  reserve(count: number): void {
    const { length, BYTES_PER_ELEMENT } = this.values
    if (count <= length) return
    const larger = Math.max(count, 2 * length, FIRST_LENGTH)
    this.#buffer.resize(Math.min(larger * BYTES_PER_ELEMENT, this.#buffer.maxByteLength))
  }

  /** Keeps so many numbers, and gives the memory of the others back. */
  truncate(count: number): Values {
    if (!this.#buffer.resizable) return this.values.slice(0, count) as Values
    this.#buffer.resize(count * this.values.BYTES_PER_ELEMENT)
    return this.values
  }
}

const SMALL_BYTES = 64 * 1024
const FIRST_LENGTH = 1024
