import type { Steps } from '../../../../shared/steps.ts'
import { isIpv4, type AddressRange, type IpAddress } from '../ip-address.ts'
import { PagedWords } from './paged-words.ts'

/**
 * A set of addresses for lists that may have a million entries: 8 bytes for one of IPv4, 32 for one of IPv6, and a binary search for a
 * lookup, of IPv4 in the part of the list with the same first 16 bits. It never changes: a list that is read again is another set.
 * Entries that overlap or touch are one range.
 */
export class SortedRanges {
  readonly #data: RangeData
  /** Every so many-th of the first addresses of IPv6: they stay in the processor's cache, of which most of the list is outside. */
  readonly #ipv6Sample: Uint32Array

  constructor(data: RangeData) {
    this.#data = data
    this.#ipv6Sample = sampleOf(data.ipv6Starts)
  }

  /** Whether an address is in one of the ranges. IPv4 is IPv4 also where it is written as IPv6. */
  has(address: IpAddress): boolean {
    const [g0 = 0, g1 = 0, g2 = 0, g3 = 0, g4 = 0, g5 = 0, g6 = 0, g7 = 0] = address
    const last = wordOf(g6, g7)
    if (isIpv4(address)) return this.#hasIpv4(last)
    return this.#hasIpv6(wordOf(g0, g1), wordOf(g2, g3), wordOf(g4, g5), last)
  }

  /** Gives the memory back. The set must not be asked any more. */
  *release(): Steps<void> {
    for (const buffer of buffersOf(this.#data))
      while (buffer.resizable && buffer.byteLength > 0) {
        buffer.resize(Math.max(0, buffer.byteLength - RELEASED_BYTES))
        yield
      }
  }

  #hasIpv4(value: number): boolean {
    const { ipv4Starts, ipv4Ends, ipv4Index } = this.#data
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

  #hasIpv6(w0: number, w1: number, w2: number, w3: number): boolean {
    const { ipv6Starts, ipv6Ends } = this.#data
    const sample = this.#ipv6Sample
    const block = countUpTo(sample, 0, sample.length / WORDS, w0, w1, w2, w3)
    if (block === 0) return false
    const start = (block - 1) * STRIDE
    const end = Math.min(block * STRIDE, ipv6Starts.length / WORDS)
    const count = countUpTo(ipv6Starts, start, end, w0, w1, w2, w3)
    return compareWith(ipv6Ends, count - 1, w0, w1, w2, w3) >= 0
  }
}

/** The first and the last address of each range, in order: of IPv4 one word each, of IPv6 four. Plain data, which a thread can hand over. */
export type RangeData = {
  readonly ipv4Starts: Uint32Array<ArrayBuffer>
  readonly ipv4Ends: Uint32Array<ArrayBuffer>
  /** For each value of the first 16 bits, how many ranges begin before; empty for a short list. */
  readonly ipv4Index: Uint32Array<ArrayBuffer>
  readonly ipv6Starts: Uint32Array<ArrayBuffer>
  readonly ipv6Ends: Uint32Array<ArrayBuffer>
}

const WORDS = 4

/** Of these data, for `postMessage`. */
export function buffersOf(data: RangeData): ArrayBuffer[] {
  return [data.ipv4Starts, data.ipv4Ends, data.ipv4Index, data.ipv6Starts, data.ipv6Ends].map(
    ({ buffer }) => buffer,
  )
}

const STRIDE = 64
/** The system takes milliseconds for the pages of a whole list. */
const RELEASED_BYTES = 1024 * 1024

function sampleOf(starts: Uint32Array): Uint32Array {
  const count = Math.ceil(starts.length / WORDS / STRIDE)
  const sample = new Uint32Array(count * WORDS)
  for (let i = 0; i < sample.length; i++)
    sample[i] = starts[Math.floor(i / WORDS) * STRIDE * WORDS + (i % WORDS)] ?? 0
  return sample
}

/** How many addresses of a sorted table are not greater than this one, if that is so of all before `low` and of none from `high` on. */
function countUpTo(
  table: Uint32Array,
  low: number,
  high: number,
  w0: number,
  w1: number,
  w2: number,
  w3: number,
): number {
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compareWith(table, middle, w0, w1, w2, w3) <= 0) low = middle + 1
    else high = middle
  }
  return low
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
  readonly #maxEntries: number
  /** Of an entry of IPv4: its first address, and the length of its prefix. */
  readonly #ipv4: PagedWords
  #ipv4Count = 0
  /** Of IPv6: the four words of its first address, and the length of its prefix. */
  readonly #ipv6: PagedWords
  #ipv6Count = 0

  /** @param maxEntries that are added at most */
  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries
    // A network of IPv6 may have all of IPv4 in it, and then is an entry of both.
    this.#ipv4 = new PagedWords(maxEntries * IPV4_FIELDS)
    this.#ipv6 = new PagedWords(maxEntries * IPV6_FIELDS)
  }

  add({ address, bits }: AddressRange): void {
    if (isIpv4(address) && bits >= IPV4_BITS) return this.#addIpv4(address, bits - IPV4_BITS)
    this.#addIpv6(address, bits)
    if (bits <= IPV4_BITS && containsIpv4(address, bits)) this.#addIpv4(address, 0)
  }

  #addIpv4(address: IpAddress, prefix: number): void {
    const at = this.#ipv4Count * IPV4_FIELDS
    this.#ipv4.reserve(at + IPV4_FIELDS)
    const { words } = this.#ipv4
    words[at] = masked(wordOf(address[6] ?? 0, address[7] ?? 0), prefix)
    words[at + 1] = prefix
    this.#ipv4Count++
  }

  #addIpv6(address: IpAddress, bits: number): void {
    const at = this.#ipv6Count * IPV6_FIELDS
    this.#ipv6.reserve(at + IPV6_FIELDS)
    const { words } = this.#ipv6
    for (let word = 0; word < WORDS; word++) {
      const value = wordOf(address[2 * word] ?? 0, address[2 * word + 1] ?? 0)
      words[at + word] = masked(value, bits - 32 * word)
    }
    words[at + WORDS] = bits
    this.#ipv6Count++
  }

  /** Ends the collecting: nothing can be added any more. */
  build(): RangeData {
    const [ipv4Starts, ipv4Ends] = this.#merge(this.#ipv4, this.#ipv4Count, 1)
    const [ipv6Starts, ipv6Ends] = this.#merge(this.#ipv6, this.#ipv6Count, WORDS)
    return { ipv4Starts, ipv4Ends, ipv4Index: indexOf(ipv4Starts), ipv6Starts, ipv6Ends }
  }

  /** @param width words of an address; an entry has one more, the length of its prefix */
  #merge(entries: PagedWords, entryCount: number, width: number): [RangeWords, RangeWords] {
    const { words } = entries
    const starts = new PagedWords(this.#maxEntries * width)
    const ends = new PagedWords(this.#maxEntries * width)
    const end = new Array<number>(width).fill(0)
    let count = 0
    for (const index of sortRows(words, entryCount, width + 1)) {
      const at = index * (width + 1)
      const bits = words[at + width] ?? 0
      for (let word = 0; word < width; word++)
        end[word] = ((words[at + word] ?? 0) | ~prefixMask(bits - 32 * word)) >>> 0
      const last = (count - 1) * width
      // Networks contain one another or are apart, so an entry is within the last range, next to it, or behind it.
      if (count > 0 && compareRows(ends.words, last, words, at, width) >= 0) continue
      if (count === 0 || !isNext(ends.words, last, words, at, width)) {
        starts.reserve((count + 1) * width)
        ends.reserve((count + 1) * width)
        for (let word = 0; word < width; word++) starts.words[count * width + word] = words[at + word] ?? 0
        count++
      }
      for (let word = 0; word < width; word++) ends.words[(count - 1) * width + word] = end[word] ?? 0
    }
    entries.truncate(0)
    return [starts.truncate(count * width), ends.truncate(count * width)]
  }
}

type RangeWords = RangeData['ipv4Starts']

const IPV4_BITS = 96
const IPV4_FIELDS = 2
const IPV6_FIELDS = WORDS + 1

const INDEX_LENGTH = 2 ** 16 + 1
/** A shorter list is searched in as many steps as a part of a long one. */
const MIN_INDEXED = 1024

function indexOf(starts: RangeWords): RangeWords {
  if (starts.length < MIN_INDEXED) return new Uint32Array()
  const index = new PagedWords(INDEX_LENGTH)
  index.reserve(INDEX_LENGTH)
  for (let top = 0, at = 0; top < INDEX_LENGTH; top++) {
    while (at < starts.length && (starts[at] ?? 0) >>> 16 < top) at++
    index.words[top] = at
  }
  return index.truncate(INDEX_LENGTH)
}

/** The indexes of the rows in order, by merging: a comparing sort of the engine's would copy them into its heap. */
function sortRows(words: Uint32Array, count: number, width: number): Uint32Array {
  let from = new PagedWords(count)
  let into = new PagedWords(count)
  from.reserve(count)
  into.reserve(count)
  for (let i = 0; i < count; i++) from.words[i] = i
  for (let run = 1; run < count; run *= 2) {
    const [sorted, merged] = [from.words, into.words]
    for (let start = 0; start < count; start += 2 * run) {
      const middle = Math.min(start + run, count)
      const end = Math.min(middle + run, count)
      let left = start
      let right = middle
      for (let at = start; at < end; at++) {
        const one = sorted[left] ?? 0
        const other = sorted[right] ?? 0
        const takesLeft =
          left < middle &&
          (right === end || compareRows(words, one * width, words, other * width, width) <= 0)
        merged[at] = takesLeft ? one : other
        if (takesLeft) left++
        else right++
      }
    }
    ;[from, into] = [into, from]
  }
  into.truncate(0)
  return from.words.subarray(0, count)
}

function compareRows(
  some: Uint32Array,
  at: number,
  others: Uint32Array,
  otherAt: number,
  width: number,
): number {
  for (let word = 0; word < width; word++) {
    const difference = (some[at + word] ?? 0) - (others[otherAt + word] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

/** Whether the address in `others` is the one after that in `some`. */
function isNext(some: Uint32Array, at: number, others: Uint32Array, otherAt: number, width: number): boolean {
  let carry = 1
  for (let word = width - 1; word >= 0; word--) {
    const sum = (some[at + word] ?? 0) + carry
    carry = sum > 0xffff_ffff ? 1 : 0
    if (sum % 2 ** 32 !== others[otherAt + word]) return false
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
function containsIpv4(address: IpAddress, bits: number): boolean {
  const mapped = [0, 0, 0, 0, 0, 0xffff]
  return mapped.every((group, i) => {
    const kept = Math.min(16, Math.max(0, bits - 16 * i))
    return ((group ^ (address[i] ?? 0)) & (0xffff << (16 - kept)) & 0xffff) === 0
  })
}
