import { prefixMask, WORD_BITS } from './address-words.ts'

/** IPv6 networks in order, of which none contains another. Plain data, which a thread can transfer. */
export type NetworkData = {
  /** The words of their first addresses. */
  readonly starts: Uint32Array<ArrayBuffer>
  /** The lengths of their prefixes. */
  readonly bits: Uint8Array<ArrayBuffer>
  /** Every `STRIDE`th of the first addresses. They stay in the processor's cache, while most of the list does not. */
  readonly sample: Uint32Array<ArrayBuffer>
}

/** How many networks there are for each in the sample. */
export const STRIDE = 16

/** Networks of one width: with `width` 2 no prefix is longer than 64 bits, and an address costs 9.5 bytes; with 4 it costs 18. */
export class Ipv6Networks {
  readonly #data: NetworkData
  readonly #width: 2 | 4

  constructor(data: NetworkData, width: 2 | 4) {
    this.#data = data
    this.#width = width
  }

  /** The words of an address. */
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

  /** Counts the addresses of a table that are not greater than this one; all before `low` are not, and all from `high` on are. */
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
