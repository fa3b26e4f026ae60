import type { Steps } from '../../../../shared/steps.ts'
import { isIpv4, type IpAddress } from '../ip-address.ts'
import { wordOf } from './address-words.ts'
import { Ipv6Networks, type NetworkData } from './ipv6-networks.ts'

/**
 * A set of addresses for lists that may have a million entries. An IPv4 entry takes 8 bytes; an IPv6 entry takes 18, or 9.5 if its prefix
 * has at most 64 bits. A lookup is a binary search, for IPv4 only in the part of the list with the same first 16 bits. The set is
 * immutable: reading a list again makes a new set. `RangeBuilder` makes the data.
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

  /** Whether an address is in one of the ranges. IPv4-mapped addresses are IPv4. */
  has(address: IpAddress): boolean {
    const [g0 = 0, g1 = 0, g2 = 0, g3 = 0, g4 = 0, g5 = 0, g6 = 0, g7 = 0] = address
    const w3 = wordOf(g6, g7)
    if (isIpv4(address)) return this.#hasIpv4(w3)
    const w0 = wordOf(g0, g1)
    const w1 = wordOf(g2, g3)
    const w2 = wordOf(g4, g5)
    return this.#ipv6Short.has(w0, w1, w2, w3) || this.#ipv6Long.has(w0, w1, w2, w3)
  }

  /** Releases the memory. The set must not be used afterwards. */
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

/** The data of a set: plain data, which a thread can transfer. */
export type RangeData = {
  /** The first and the last address of each IPv4 range, in order. Overlapping or adjacent entries are one range. */
  readonly ipv4Starts: Uint32Array<ArrayBuffer>
  readonly ipv4Ends: Uint32Array<ArrayBuffer>
  /** For each value of an address's first 16 bits, the number of ranges that begin before it; empty for a short list. */
  readonly ipv4Index: Uint32Array<ArrayBuffer>
  /** IPv6 networks with a prefix of at most 64 bits. */
  readonly ipv6Short: NetworkData
  /** IPv6 networks with a longer prefix, which are outside the networks above. */
  readonly ipv6Long: NetworkData
}

/** Returns the buffers of the data, to transfer them with `postMessage`. */
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

/** Bytes to release in one step, because releasing the pages of a whole list takes the system milliseconds. */
const RELEASED_BYTES = 1024 * 1024
