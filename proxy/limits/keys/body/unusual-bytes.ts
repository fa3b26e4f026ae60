/** Maximum bytes to decode of values in a body that have escapes or are not ASCII: 160 for each of a hundred clients. */
const MAX_UNUSUAL_BYTES = 16 * 1024
/** Maximum number of such values. A body may name a hundred accounts, but has room for two thousand spellings of one account. */
const MAX_UNUSUAL_VALUES = 128
/** A longer value is not an email address. */
const MAX_ADDRESS_LENGTH = 320
/** The part of `MAX_UNUSUAL_BYTES` that may be used by values longer than an email address. */
const MAX_LONG_BYTES = 8 * 1024

/** Limits the number and the bytes of the values in a body that are decoded or compared letter by letter. */
export class UnusualBytes {
  #values = 0
  #bytes = 0
  #longBytes = 0

  /** Takes a value of this length from the budget. Returns false if it exceeds the budget, so that the request is refused. */
  take(length: number): boolean {
    this.#values += 1
    this.#bytes += length
    if (length > MAX_ADDRESS_LENGTH) this.#longBytes += length
    return (
      this.#values <= MAX_UNUSUAL_VALUES &&
      this.#bytes <= MAX_UNUSUAL_BYTES &&
      this.#longBytes <= MAX_LONG_BYTES
    )
  }

  /** Whether all of these values, without duplicates, are within the budget of a body. */
  static hasRoomFor(values: readonly string[]): boolean {
    const budget = new UnusualBytes()
    const unusual = new Set(values.filter((value) => !isPlainText(value)).map(readPartOf))
    return unusual.values().every(({ length }) => budget.take(length))
  }

  /** Takes the bytes by which a value has grown from the budget. */
  add(length: number): void {
    this.#bytes += length
  }
}

/** Whether a value is ASCII without escapes and control characters, and thus costs next to nothing to read. */
export function isPlainText(value: string): boolean {
  return plain.test(value)
}

const plain = /^[\x20-\x24\x26-\x7e]*$/

/** Maximum bytes of a value to read. Values may overlap, and decoding more of each would delay other requests. */
const MAX_READ = 2048

/** Returns the part of a value that is read: all of a short value; of a long one, the first 2,048 bytes after leading blanks. */
export function readPartOf(value: string): string {
  return value.length > MAX_READ ? value.trim().slice(0, MAX_READ) : value
}
