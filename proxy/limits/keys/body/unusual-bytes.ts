/** Bytes of values, beyond ASCII or with escapes, that are taken apart in a body: 160 for each of a hundred clients. */
const MAX_UNUSUAL_BYTES = 16 * 1024
/**
 * Maximum number of such values, however short: a body has room for two thousand spellings of one account, and may name a hundred
 * accounts.
 */
const MAX_UNUSUAL_VALUES = 128
/** A longer value is no address. */
const MAX_ADDRESS_LENGTH = 320
/** The part of `MAX_UNUSUAL_BYTES` that values longer than an address may take. */
const MAX_LONG_BYTES = 8 * 1024

/** Limits how many of the values in a body, and bytes of these, are decoded or compared letter by letter. */
export class UnusualBytes {
  #values = 0
  #bytes = 0
  #longBytes = 0

  /** Returns false, and the request is refused, if there is no room for one more value, or for one so long. */
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

  /** Whether the budget of a body has room for all of these values, each counted once. */
  static hasRoomFor(values: readonly string[]): boolean {
    const budget = new UnusualBytes()
    const unusual = new Set(values.filter((value) => !isPlainText(value)).map(readPartOf))
    return unusual.values().every(({ length }) => budget.take(length))
  }

  /** Adds the bytes by which a value has grown. */
  add(length: number): void {
    this.#bytes += length
  }
}

/** Whether a value is ASCII without escapes and controls: reading it costs next to nothing. */
export function isPlainText(value: string): boolean {
  return plain.test(value)
}

const plain = /^[\x20-\x24\x26-\x7e]*$/

/** Bytes of a value that are looked at: to decode more of one that overlaps with others would keep others waiting. */
const MAX_READ = 2048

/** The part of a value that is looked at: all of one that is no longer than an address may be. */
export function readPartOf(value: string): string {
  return value.length > MAX_READ ? value.trim().slice(0, MAX_READ) : value
}
