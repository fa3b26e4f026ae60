import { ConnectionError, errorCodes } from '../frames.ts'
import { decodeHuffman } from './huffman.ts'
import { ENTRY_OVERHEAD, STATIC_ENTRIES, staticTable } from './static-table.ts'

/** Bytes of the dynamic table: the default size that clients may use. */
const TABLE_BYTES = 4096
/** 2^28 and more is larger than any index or length can be. */
const MAX_INTEGER_BYTES = 5
/** Larger content types are dropped with the fields beyond the limit. */
const MAX_TYPE_BYTES = 128

/**
 * Decodes the header lists of one connection, in order (RFC 7541). Names and values have one character per byte. Memory is bounded by the
 * dynamic table and by the limit of the list: fields beyond the limit are decoded, because the table depends on them, and dropped. The
 * first content type there is kept, because it tells in which form the client reads an error: some gRPC clients send it last.
 *
 * A list that takes more bytes from the dynamic table than the table can hold, as fields or as names of literals, repeats them again and
 * again, which no encoder does. Each byte of its block would cost as much as thousands, here and at the backend. Such a list counts as over
 * the limit, too.
 */
export class HpackDecoder {
  /** Name, value, name, value… with the newest entry last. */
  #entries: string[] = []
  /** How many items at the beginning have been evicted. */
  #gone = 0
  #bytes = 0
  #maxBytes = TABLE_BYTES
  readonly #maxListBytes: number
  #block: Buffer = Buffer.alloc(0)
  #at = 0
  /** Bytes that the list takes from the dynamic table, as fields or as names of fields. */
  #takenBytes = 0
  /** The list that was read last is over its limit. */
  isTooLarge = false

  /** @param maxListBytes names, values and 32 bytes for each field */
  constructor(maxListBytes: number) {
    this.#maxListBytes = maxListBytes
  }

  /**
   * @returns name, value, name, value…; of a list over its limit, the beginning that fits, and the content type
   * @throws {ConnectionError} for an invalid header block: later blocks could not be decoded either
   */
  decode(block: Buffer): string[] {
    this.#block = block
    this.#at = 0
    const list: string[] = []
    let listBytes = 0
    let isTypeKept = false
    this.#takenBytes = 0
    while (this.#at < block.length) {
      const first = block[this.#at] ?? 0
      let name: string
      let value: string
      if (first >= 0x80) {
        const index = this.#readInteger(7)
        name = this.#nameAt(index)
        value = this.#valueAt(index)
        if (index > STATIC_ENTRIES) this.#takenBytes += bytesOf(name, value)
      } else if (first >= 0x40) {
        name = this.#readName(6)
        value = this.#readString()
        this.#add(name, value)
      } else if (first >= 0x20) {
        if (listBytes > 0) throw malformed('dynamic table size update after a field')
        this.#resize(this.#readInteger(5))
        continue
      } else {
        name = this.#readName(4)
        value = this.#readString()
      }
      const bytes = bytesOf(name, value)
      listBytes += bytes
      if (this.#takenBytes > TABLE_BYTES) listBytes = Infinity
      if (listBytes <= this.#maxListBytes) list.push(name, value)
      else if (name === 'content-type' && !isTypeKept && bytes <= MAX_TYPE_BYTES) {
        isTypeKept = true
        list.push(name, value)
      }
    }
    this.#block = nothing
    this.isTooLarge = listBytes > this.#maxListBytes
    return list
  }

  #readName(prefixBits: number): string {
    const index = this.#readInteger(prefixBits)
    if (index === 0) return this.#readString()
    const name = this.#nameAt(index)
    if (index > STATIC_ENTRIES) this.#takenBytes += name.length
    return name
  }

  #nameAt(index: number): string {
    const name = index <= STATIC_ENTRIES ? staticTable[2 * index - 2] : this.#entries[this.#placeOf(index)]
    if (name === undefined) throw malformed('HPACK index out of range')
    return name
  }

  #valueAt(index: number): string {
    const value =
      index <= STATIC_ENTRIES ? staticTable[2 * index - 1] : this.#entries[this.#placeOf(index) + 1]
    if (value === undefined) throw malformed('HPACK index out of range')
    return value
  }

  /** The newest entry has the lowest index. */
  #placeOf(index: number): number {
    const place = this.#entries.length - 2 * (index - STATIC_ENTRIES)
    return place >= this.#gone ? place : -2
  }

  #add(name: string, value: string): void {
    const bytes = bytesOf(name, value)
    this.#shrinkTo(this.#maxBytes - bytes)
    if (bytes > this.#maxBytes) return
    this.#entries.push(name, value)
    this.#bytes += bytes
  }

  #resize(maxBytes: number): void {
    if (maxBytes > TABLE_BYTES) throw malformed('dynamic table size above the limit')
    this.#maxBytes = maxBytes
    this.#shrinkTo(maxBytes)
  }

  #shrinkTo(bytes: number): void {
    while (this.#bytes > 0 && this.#bytes > bytes) {
      const name = this.#entries[this.#gone] ?? ''
      const value = this.#entries[this.#gone + 1] ?? ''
      this.#bytes -= bytesOf(name, value)
      this.#entries[this.#gone] = this.#entries[this.#gone + 1] = ''
      this.#gone += 2
    }
    // Not on each eviction, because removing items moves all others.
    if (this.#gone > 256 || this.#gone === this.#entries.length) {
      this.#entries.splice(0, this.#gone)
      this.#gone = 0
    }
  }

  /** Section 5.1. */
  #readInteger(prefixBits: number): number {
    const mask = (1 << prefixBits) - 1
    let value = (this.#block[this.#at++] ?? 0) & mask
    if (value < mask) return value
    for (let i = 0; i < MAX_INTEGER_BYTES; i++) {
      const byte = this.#block[this.#at++]
      if (byte === undefined) throw malformed('truncated HPACK integer')
      value += (byte & 0x7f) * 2 ** (7 * i)
      if (byte < 0x80) return value
    }
    throw malformed('HPACK integer too large')
  }

  /** Section 5.2. */
  #readString(): string {
    const isHuffman = (this.#block[this.#at] ?? 0) >= 0x80
    if (this.#at >= this.#block.length) throw malformed('truncated header block')
    const length = this.#readInteger(7)
    const start = this.#at
    const end = start + length
    if (end > this.#block.length) throw malformed('truncated HPACK string')
    this.#at = end
    if (!isHuffman) return this.#block.toString('latin1', start, end)
    const text = decodeHuffman(this.#block, start, end)
    if (text === undefined) throw malformed('invalid Huffman encoding')
    return text
  }
}

const nothing = Buffer.alloc(0)

/** The size of a field, in a list and in the table. */
function bytesOf(name: string, value: string): number {
  return name.length + value.length + ENTRY_OVERHEAD
}

function malformed(message: string): ConnectionError {
  return new ConnectionError(errorCodes.compressionError, message)
}
