import { isIpv4, type AddressRange, type IpAddress } from '../ip-address.ts'

/**
 * A set of addresses for lists that may have a million entries: 8 bytes for one of IPv4, 32 for one of IPv6, and a binary search for a
 * lookup. It never changes: a list that is read again is another set. Entries that overlap or touch are one range.
 */
export class SortedRanges {
  readonly #data: RangeData
  readonly #ipv6Count: number

  constructor(data: RangeData) {
    this.#data = data
    this.#ipv6Count = data.ipv6Starts.length / WORDS
  }

  /** Whether an address is in one of the ranges. IPv4 is IPv4 also where it is written as IPv6. */
  has(address: IpAddress): boolean {
    const [g0 = 0, g1 = 0, g2 = 0, g3 = 0, g4 = 0, g5 = 0, g6 = 0, g7 = 0] = address
    const last = wordOf(g6, g7)
    if (isIpv4(address)) return this.#hasIpv4(last)
    return this.#hasIpv6(wordOf(g0, g1), wordOf(g2, g3), wordOf(g4, g5), last)
  }

  #hasIpv4(value: number): boolean {
    const { ipv4Starts, ipv4Ends } = this.#data
    let low = 0
    let high = ipv4Starts.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((ipv4Starts[middle] ?? 0) <= value) low = middle + 1
      else high = middle
    }
    return low > 0 && value <= (ipv4Ends[low - 1] ?? 0)
  }

  #hasIpv6(w0: number, w1: number, w2: number, w3: number): boolean {
    const { ipv6Starts, ipv6Ends } = this.#data
    let low = 0
    let high = this.#ipv6Count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareWith(ipv6Starts, middle, w0, w1, w2, w3) <= 0) low = middle + 1
      else high = middle
    }
    return low > 0 && compareWith(ipv6Ends, low - 1, w0, w1, w2, w3) >= 0
  }
}

/** The first and the last address of each range, in order: of IPv4 one word each, of IPv6 four. Plain data, which a thread can hand over. */
export type RangeData = {
  readonly ipv4Starts: Uint32Array<ArrayBuffer>
  readonly ipv4Ends: Uint32Array<ArrayBuffer>
  readonly ipv6Starts: Uint32Array<ArrayBuffer>
  readonly ipv6Ends: Uint32Array<ArrayBuffer>
}

const WORDS = 4

/** Of these data, for `postMessage`. */
export function buffersOf(data: RangeData): ArrayBuffer[] {
  return [data.ipv4Starts.buffer, data.ipv4Ends.buffer, data.ipv6Starts.buffer, data.ipv6Ends.buffer]
}

/** The word of an address in the table compared with four words: negative if it is smaller. */
function compareWith(
  table: Uint32Array,
  index: number,
  w0: number,
  w1: number,
  w2: number,
  w3: number,
): number {
  const at = index * WORDS
  return (
    (table[at] ?? 0) - w0 ||
    (table[at + 1] ?? 0) - w1 ||
    (table[at + 2] ?? 0) - w2 ||
    (table[at + 3] ?? 0) - w3
  )
}

function wordOf(high: number, low: number): number {
  return ((high << 16) | low) >>> 0
}

/** Collects the entries of a list in any order, and sorts them. A million take a second: not for a process that serves. */
export class RangeBuilder {
  /** Of IPv4: the first address and the length of the prefix in one number, so that the engine sorts them. */
  #ipv4 = new Float64Array(1024)
  #ipv4Count = 0
  /** Of IPv6: the four words of the first address, and the length of the prefix. */
  #ipv6 = new Uint32Array(1024 * IPV6_FIELDS)
  #ipv6Count = 0

  add({ address, bits }: AddressRange): void {
    if (isIpv4(address) && bits >= IPV4_BITS) return this.#addIpv4(address, bits - IPV4_BITS)
    this.#addIpv6(address, bits)
    if (bits <= IPV4_BITS && isBeforeIpv4(address, bits)) this.#addIpv4(address, 0)
  }

  #addIpv4(address: IpAddress, prefix: number): void {
    if (this.#ipv4Count === this.#ipv4.length) this.#ipv4 = grown(this.#ipv4, Float64Array)
    const first = masked(wordOf(address[6] ?? 0, address[7] ?? 0), prefix)
    this.#ipv4[this.#ipv4Count++] = first * PREFIXES + prefix
  }

  #addIpv6(address: IpAddress, bits: number): void {
    const at = this.#ipv6Count * IPV6_FIELDS
    if (at === this.#ipv6.length) this.#ipv6 = grown(this.#ipv6, Uint32Array)
    for (let word = 0; word < WORDS; word++)
      this.#ipv6[at + word] = masked(
        wordOf(address[2 * word] ?? 0, address[2 * word + 1] ?? 0),
        bits - 32 * word,
      )
    this.#ipv6[at + WORDS] = bits
    this.#ipv6Count++
  }

  build(): RangeData {
    const [ipv4Starts, ipv4Ends] = this.#buildIpv4()
    const [ipv6Starts, ipv6Ends] = this.#buildIpv6()
    return { ipv4Starts, ipv4Ends, ipv6Starts, ipv6Ends }
  }

  #buildIpv4(): [Uint32Array<ArrayBuffer>, Uint32Array<ArrayBuffer>] {
    const sorted = this.#ipv4.subarray(0, this.#ipv4Count).sort()
    const starts = new Uint32Array(sorted.length)
    const ends = new Uint32Array(sorted.length)
    let count = 0
    let lastEnd = -2
    for (const each of sorted) {
      const prefix = each % PREFIXES
      const start = (each - prefix) / PREFIXES
      const end = start + 2 ** (32 - prefix) - 1
      if (start > lastEnd + 1) {
        starts[count] = start
        ends[count++] = lastEnd = end
      } else if (end > lastEnd) ends[count - 1] = lastEnd = end
    }
    return [starts.slice(0, count), ends.slice(0, count)]
  }

  #buildIpv6(): [Uint32Array<ArrayBuffer>, Uint32Array<ArrayBuffer>] {
    const all = this.#ipv6
    const order = new Uint32Array(this.#ipv6Count).map((_, index) => index)
    order.sort((one, other) => compareEntries(all, one * IPV6_FIELDS, other * IPV6_FIELDS))
    const starts = new Uint32Array(this.#ipv6Count * WORDS)
    const ends = new Uint32Array(this.#ipv6Count * WORDS)
    const end = new Uint32Array(WORDS)
    let count = 0
    for (const index of order) {
      const at = index * IPV6_FIELDS
      const bits = all[at + WORDS] ?? 0
      for (let word = 0; word < WORDS; word++)
        end[word] = ((all[at + word] ?? 0) | ~prefixMask(bits - 32 * word)) >>> 0
      const [w0 = 0, w1 = 0, w2 = 0, w3 = 0] = all.subarray(at, at + WORDS)
      // Networks either contain one another or are apart, so the last range is all that an entry can be in.
      if (count > 0 && compareWith(ends, count - 1, w0, w1, w2, w3) >= 0) continue
      if (count > 0 && isNext(ends, count - 1, w0, w1, w2, w3)) {
        ends.set(end, (count - 1) * WORDS)
        continue
      }
      starts.set([w0, w1, w2, w3], count * WORDS)
      ends.set(end, count * WORDS)
      count++
    }
    return [starts.slice(0, count * WORDS), ends.slice(0, count * WORDS)]
  }
}

const IPV4_BITS = 96
/** More than the lengths of prefixes of IPv4. */
const PREFIXES = 64
const IPV6_FIELDS = WORDS + 1

function compareEntries(all: Uint32Array, one: number, other: number): number {
  for (let field = 0; field < IPV6_FIELDS; field++) {
    const difference = (all[one + field] ?? 0) - (all[other + field] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** Whether the four words are the address after the one in the table. */
function isNext(table: Uint32Array, index: number, ...next: readonly number[]): boolean {
  let carry = 1
  for (let word = WORDS - 1; word >= 0; word--) {
    const sum = (table[index * WORDS + word] ?? 0) + carry
    carry = sum > 0xffff_ffff ? 1 : 0
    if (sum % 2 ** 32 !== next[word]) return false
  }
  return carry === 0
}

/** A word with so many of its first bits set: none for 0 and less, all for 32 and more. */
function prefixMask(bits: number): number {
  return bits <= 0 ? 0 : bits >= 32 ? 0xffff_ffff : (0xffff_ffff << (32 - bits)) >>> 0
}

function masked(word: number, bits: number): number {
  return (word & prefixMask(bits)) >>> 0
}

/** Whether the network of IPv6, whose prefix is no longer than that of the IPv4-mapped addresses, has all of these. */
function isBeforeIpv4(address: IpAddress, bits: number): boolean {
  const mapped = [0, 0, 0, 0, 0, 0xffff]
  return mapped.every((group, i) => {
    const kept = Math.min(16, Math.max(0, bits - 16 * i))
    return ((group ^ (address[i] ?? 0)) & (0xffff << (16 - kept)) & 0xffff) === 0
  })
}

function grown<Table extends Float64Array<ArrayBuffer> | Uint32Array<ArrayBuffer>>(
  table: Table,
  Kind: new (length: number) => Table,
): Table {
  const larger = new Kind(2 * table.length)
  larger.set(table)
  return larger
}
