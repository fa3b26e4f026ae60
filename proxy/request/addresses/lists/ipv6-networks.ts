import { prefixMask, WORD_BITS } from './address-words.ts'

/** IPv6 networks in order. No network contains another one. Plain data, which a thread can transfer. */
export type NetworkData = {
  /** The words of each network's first address. */
  readonly starts: Uint32Array<ArrayBuffer>
  /** The prefix lengths. */
  readonly bits: Uint8Array<ArrayBuffer>
  /** Every `STRIDE`th first address. The sample stays in the processor's cache, unlike most of the list. */
  readonly sample: Uint32Array<ArrayBuffer>
}

/** The number of networks for each address in the sample. */
export const STRIDE = 16

/** Networks of one width, in words. With 2 words, prefixes have at most 64 bits, and a network takes 9.5 bytes; with 4, it takes 18. */
export class Ipv6Networks {
  readonly #data: NetworkData
  readonly #width: 2 | 4

  constructor(data: NetworkData, width: 2 | 4) {
    this.#data = data
    this.#width = width
  }

  /** Whether a network contains an address, given by its words. */
  has(w0: number, w1: number, w2: number, w3: number): boolean {
    const { starts, bits, sample } = this.#data
    if (bits.length === 0) return false
    const block = this.#countUpTo(sample, 0, sample.length / this.#width, w0, w1, w2, w3)
    if (block === 0) return false
    const end = Math.min(block * STRIDE, bits.length)
    const last = this.#countUpTo(starts, (block - 1) * STRIDE, end, w0, w1, w2, w3) - 1
    const at = last * this.#width
    const length = bits[last] ?? 0
    if ((((starts[at] ?? 0) ^ w0) & prefixMask(length)) !== 0) return false
    if ((((starts[at + 1] ?? 0) ^ w1) & prefixMask(length - WORD_BITS)) !== 0) return false
    if (this.#width === 2) return true
    if ((((starts[at + 2] ?? 0) ^ w2) & prefixMask(length - 2 * WORD_BITS)) !== 0) return false
    return (((starts[at + 3] ?? 0) ^ w3) & prefixMask(length - 3 * WORD_BITS)) === 0
  }

  /**
   * Counts the addresses of a table that are not greater than this one. No address before `low` is greater; every one from `high` on is.
   */
  #countUpTo(
    table: Uint32Array,
    low: number,
    high: number,
    w0: number,
    w1: number,
    w2: number,
    w3: number,
  ): number {
    const width = this.#width
    while (low < high) {
      const middle = (low + high) >>> 1
      const at = middle * width
      const order =
        (table[at] ?? 0) - w0 ||
        (table[at + 1] ?? 0) - w1 ||
        (width === 4 ? (table[at + 2] ?? 0) - w2 || (table[at + 3] ?? 0) - w3 : 0)
      if (order <= 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
