import { isIpv4, type AddressRange, type IpAddress } from '../ip-address.ts'
import { prefixMask, WORD_BITS, wordOf } from './address-words.ts'
import { STRIDE, type NetworkData } from './ipv6-networks.ts'
import { PagedTable } from './paged-table.ts'
import { sortRows } from './sort-rows.ts'
import type { RangeData } from './sorted-ranges.ts'

type Words = Uint32Array<ArrayBuffer>

/** Collects the entries of a list in any order, and sorts them. A million entries take a second, too long for a serving process. */
export class RangeBuilder {
  readonly #maxEntries: number
  /** IPv4 entries: the first address and the prefix length. */
  readonly #ipv4: PagedTable<Words>
  #ipv4Count = 0
  /** IPv6 entries: the four words of the first address and the prefix length. */
  readonly #ipv6: PagedTable<Words>
  #ipv6Count = 0

  /** @param maxEntries maximum number of entries */
  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries
    // An IPv6 network that contains all of IPv4 is an entry of both tables.
    this.#ipv4 = new PagedTable(Uint32Array, maxEntries * IPV4_FIELDS)
    this.#ipv6 = new PagedTable(Uint32Array, maxEntries * IPV6_FIELDS)
  }

  add({ address, bits }: AddressRange): void {
    if (isIpv4(address) && bits >= IPV4_BITS) return this.#addIpv4(address, bits - IPV4_BITS)
    this.#addIpv6(address, bits)
    if (bits <= IPV4_BITS && containsIpv4(address, bits)) this.#addIpv4(address, 0)
  }

  #addIpv4(address: IpAddress, prefix: number): void {
    const at = this.#ipv4Count * IPV4_FIELDS
    this.#ipv4.reserve(at + IPV4_FIELDS)
    const { values } = this.#ipv4
    values[at] = masked(wordOf(address[6] ?? 0, address[7] ?? 0), prefix)
    values[at + 1] = prefix
    this.#ipv4Count++
  }

  #addIpv6(address: IpAddress, bits: number): void {
    const at = this.#ipv6Count * IPV6_FIELDS
    this.#ipv6.reserve(at + IPV6_FIELDS)
    const { values } = this.#ipv6
    for (let word = 0; word < WORDS; word++) {
      const value = wordOf(address[2 * word] ?? 0, address[2 * word + 1] ?? 0)
      values[at + word] = masked(value, bits - WORD_BITS * word)
    }
    values[at + WORDS] = bits
    this.#ipv6Count++
  }

  /** Sorts and joins the entries. Nothing can be added afterwards. */
  build(): RangeData {
    return { ...this.#buildIpv4(), ...this.#buildIpv6() }
  }

  #buildIpv4(): Pick<RangeData, 'ipv4Starts' | 'ipv4Ends' | 'ipv4Index'> {
    const { values } = this.#ipv4
    const starts = new PagedTable(Uint32Array, this.#maxEntries)
    const ends = new PagedTable(Uint32Array, this.#maxEntries)
    let count = 0
    let last = -1
    for (const index of sortRows(values, this.#ipv4Count, IPV4_FIELDS)) {
      const start = values[index * IPV4_FIELDS] ?? 0
      const end = (start | ~prefixMask(values[index * IPV4_FIELDS + 1] ?? 0)) >>> 0
      // Networks are disjoint or nested, so an entry is within the last range, adjacent to it, or after it.
      if (end <= last) continue
      if (count === 0 || start !== last + 1) {
        starts.reserve(count + 1)
        ends.reserve(count + 1)
        starts.values[count++] = start
      }
      ends.values[count - 1] = last = end
    }
    this.#ipv4.truncate(0)
    const ipv4Starts = starts.truncate(count)
    return { ipv4Starts, ipv4Ends: ends.truncate(count), ipv4Index: indexOf(ipv4Starts) }
  }

  #buildIpv6(): Pick<RangeData, 'ipv6Short' | 'ipv6Long'> {
    const { values } = this.#ipv6
    const short = new NetworkTable(this.#maxEntries, 2)
    const long = new NetworkTable(this.#maxEntries, WORDS)
    let last = -1
    for (const index of sortRows(values, this.#ipv6Count, IPV6_FIELDS)) {
      const at = index * IPV6_FIELDS
      // Skips networks within the last one: networks are disjoint or nested, and a network sorts before those within it.
      if (last !== -1 && isWithin(values, last, at)) continue
      ;((values[at + WORDS] ?? 0) <= SHORT_BITS ? short : long).add(values, at)
      last = at
    }
    this.#ipv6.truncate(0)
    return { ipv6Short: short.build(), ipv6Long: long.build() }
  }
}

/** Networks in order, with `width` words of each first address. */
class NetworkTable {
  readonly #width: number
  readonly #starts: PagedTable<Words>
  readonly #bits: PagedTable<Uint8Array<ArrayBuffer>>
  readonly #sample: PagedTable<Words>
  #count = 0

  constructor(maxCount: number, width: number) {
    this.#width = width
    this.#starts = new PagedTable(Uint32Array, maxCount * width)
    this.#bits = new PagedTable(Uint8Array, maxCount)
    this.#sample = new PagedTable(Uint32Array, Math.ceil(maxCount / STRIDE) * width)
  }

  /** @param at the index of the row in the entries */
  add(entries: Uint32Array, at: number): void {
    const width = this.#width
    const first = this.#count * width
    this.#starts.reserve(first + width)
    this.#bits.reserve(this.#count + 1)
    for (let word = 0; word < width; word++) this.#starts.values[first + word] = entries[at + word] ?? 0
    this.#bits.values[this.#count++] = entries[at + WORDS] ?? 0
  }

  build(): NetworkData {
    const width = this.#width
    const sampled = Math.ceil(this.#count / STRIDE) * width
    this.#sample.reserve(sampled)
    for (let at = 0; at < sampled; at += width)
      for (let word = 0; word < width; word++)
        this.#sample.values[at + word] = this.#starts.values[at * STRIDE + word] ?? 0
    return {
      starts: this.#starts.truncate(this.#count * width),
      bits: this.#bits.truncate(this.#count),
      sample: this.#sample.truncate(sampled),
    }
  }
}

const WORDS = 4
const IPV4_BITS = 96
const IPV4_FIELDS = 2
const IPV6_FIELDS = WORDS + 1
/** The maximum prefix length for which half of an address suffices. */
const SHORT_BITS = 64

const INDEX_LENGTH = 2 ** 16 + 1
/** A shorter list needs no index: searching all of it takes no more steps than searching a part of a long one. */
const MIN_INDEXED = 1024

function indexOf(starts: Words): Words {
  if (starts.length < MIN_INDEXED) return new Uint32Array()
  const index = new PagedTable(Uint32Array, INDEX_LENGTH)
  index.reserve(INDEX_LENGTH)
  for (let top = 0, at = 0; top < INDEX_LENGTH; top++) {
    while (at < starts.length && (starts[at] ?? 0) >>> 16 < top) at++
    index.values[top] = at
  }
  return index.truncate(INDEX_LENGTH)
}

/** Whether the network of one row contains the first address of another row. */
function isWithin(entries: Uint32Array, network: number, at: number): boolean {
  const bits = entries[network + WORDS] ?? 0
  for (let word = 0; word < WORDS; word++) {
    const differing = (entries[network + word] ?? 0) ^ (entries[at + word] ?? 0)
    if ((differing & prefixMask(bits - WORD_BITS * word)) !== 0) return false
  }
  return true
}

function masked(word: number, bits: number): number {
  return (word & prefixMask(bits)) >>> 0
}

/** Whether an IPv6 network, with a prefix of at most 96 bits, contains all IPv4-mapped addresses. */
function containsIpv4(address: IpAddress, bits: number): boolean {
  const mapped = [0, 0, 0, 0, 0, 0xffff]
  return mapped.every((group, i) => {
    const kept = Math.min(16, Math.max(0, bits - 16 * i))
    return ((group ^ (address[i] ?? 0)) & (0xffff << (16 - kept)) & 0xffff) === 0
  })
}
