type Column = Uint32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>

/**
 * A column of numbers that grows in place. A large column has pages of its own, so that growing copies nothing, and releasing it returns
 * all memory to the system. The C library's allocator keeps freed memory: with it, reloading a list of 32 MB left 200 MB behind. A small
 * column is an ordinary array, because a process is limited to 65,530 mappings.
 */
export class PagedTable<Values extends Column> {
  readonly #buffer: ArrayBuffer
  /** Tracks the length of the buffer. Reading a large array created with an explicit length takes five times as long. */
  readonly values: Values

  /**
   * @param Values the type of the numbers
   * @param maxLength maximum count of numbers; for a large table, the address space for them is reserved
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

  /** Makes room for `count` numbers. */
  reserve(count: number): void {
    const { length, BYTES_PER_ELEMENT } = this.values
    if (count <= length) return
    const larger = Math.max(count, 2 * length, FIRST_LENGTH)
    this.#buffer.resize(Math.min(larger * BYTES_PER_ELEMENT, this.#buffer.maxByteLength))
  }

  /** Keeps the first `count` numbers, and releases the memory of the rest. */
  truncate(count: number): Values {
    if (!this.#buffer.resizable) return this.values.slice(0, count) as Values
    this.#buffer.resize(count * this.values.BYTES_PER_ELEMENT)
    return this.values
  }
}

const SMALL_BYTES = 64 * 1024
const FIRST_LENGTH = 1024
