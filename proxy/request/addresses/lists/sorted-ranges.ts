import type { Steps } from '../../../../shared/steps.ts'
import { isIpv4, type IpAddress } from '../ip-address.ts'
import { wordOf } from './address-words.ts'
import { Ipv6Networks, type NetworkData } from './ipv6-networks.ts'

/**
 * A set of addresses for lists that may have a million entries: 8 bytes for one of IPv4, 18 for one of IPv6 or 9.5 for a network of it with
 * a prefix of 64 bits or less, and a binary search for a lookup, of IPv4 in the part of the list with the same first 16 bits. It never
 * changes: a list that is read again is another set. `RangeBuilder` makes the data.
 */
export class SortedRanges {
  readonly data: RangeData
  readonly #ipv6Short: Ipv6Networks
  readonly #ipv6Long: Ipv6Networks

  constructor(data: RangeData) {
    this.data = data
    this.#ipv6Short = new Ipv6Networks(data.ipv6Short, 2)
    this.#ipv6Long = new Ipv6Networks(data.ipv6Long, 4)
  }

  /** Whether an address is in one of the ranges. IPv4 is IPv4 even if it is written as IPv6. */
  has(address: IpAddress): boolean {
    const [g0 = 0, g1 = 0, g2 = 0, g3 = 0, g4 = 0, g5 = 0, g6 = 0, g7 = 0] = address
    const w3 = wordOf(g6, g7)
    if (isIpv4(address)) return this.#hasIpv4(w3)
    const w0 = wordOf(g0, g1)
    const w1 = wordOf(g2, g3)
    const w2 = wordOf(g4, g5)
    return this.#ipv6Short.has(w0, w1, w2, w3) || this.#ipv6Long.has(w0, w1, w2, w3)
  }

  /** Gives the memory back. The set must not be asked any more. */
  *release(): Steps<void> {
    for (const buffer of buffersOf(this.data))
      while (buffer.resizable && buffer.byteLength > 0) {
        buffer.resize(Math.max(0, buffer.byteLength - RELEASED_BYTES))
        yield
      }
  }

  #hasIpv4(value: number): boolean {
    const { ipv4Starts, ipv4Ends, ipv4Index } = this.data
    const top = value >>> 16
    let low = ipv4Index[top] ?? 0
    let high = ipv4Index[top + 1] ?? ipv4Starts.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((ipv4Starts[middle] ?? 0) <= value) low = middle + 1
      else high = middle
    }
    return low > 0 && value <= (ipv4Ends[low - 1] ?? 0)
  }
}

/** Plain data, which a thread can hand over. */
export type RangeData = {
  /** The first and the last address of each range of IPv4, in order. Entries that overlap or touch are one range. */
  readonly ipv4Starts: Uint32Array<ArrayBuffer>
  readonly ipv4Ends: Uint32Array<ArrayBuffer>
  /** By the first 16 bits of an address, how many ranges begin before; empty for a short list. */
  readonly ipv4Index: Uint32Array<ArrayBuffer>
  /** Networks of IPv6 with a prefix of at most 64 bits. */
  readonly ipv6Short: NetworkData
  /** Networks with a longer prefix, outside of the others. */
  readonly ipv6Long: NetworkData
}

/** The buffers of these data, to transfer by `postMessage`. */
export function buffersOf({
  ipv4Starts,
  ipv4Ends,
  ipv4Index,
  ipv6Short,
  ipv6Long,
}: RangeData): ArrayBuffer[] {
  const networks = [ipv6Short, ipv6Long].flatMap(({ starts, bits, sample }) => [starts, bits, sample])
  return [ipv4Starts, ipv4Ends, ipv4Index, ...networks].map(({ buffer }) => buffer)
}

/** The system takes milliseconds for the pages of a whole list. */
const RELEASED_BYTES = 1024 * 1024
