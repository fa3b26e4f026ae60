import { ownCopy } from '../../message/detach-buffer.ts'
import { ENTRY_OVERHEAD, STATIC_ENTRIES, staticTable } from './static-table.ts'

/** Bytes of the dynamic table that are used, even if the client offers more. */
const TABLE_BYTES = 4096
/** Longer fields would evict too many others. */
const MAX_ENTRY_LENGTH = 512
/** Maximum number of names for which the hash of the last value is remembered, so that repeated values are put into the table. */
const MAX_NAMES = 64

/** Fields whose values others could guess by watching sizes (RFC 7541 section 7.1), and fields whose values no two responses share. */
const neverIndexed = new Set(['set-cookie', 'authorization', 'www-authenticate', 'proxy-authenticate'])

const staticFields = new Map<string, number>()
const staticNames = new Map<string, number>()
for (let i = STATIC_ENTRIES; i > 0; i--) {
  const [name = '', value = ''] = [staticTable[2 * i - 2], staticTable[2 * i - 1]]
  if (value !== '') staticFields.set(`${name}:${value}`, i)
  staticNames.set(name, i)
}

/** The buffer that lists are encoded in, before they are copied. Grows to the largest list. */
let room = Buffer.allocUnsafeSlow(16 * 1024)

/** The last value of one name, by its hash, and the table entry of the name: its value, and its insertion number. */
type Known = { hash: number; value: string; entry: number }

/** Different values may have the same hash: then one is put into the table that is not repeated. */
function hashOf(text: string): number {
  let hash = text.length
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0
  return hash
}

/**
 * Encodes the lists of fields of one connection, in order (RFC 7541). A field goes into the table when it is sent with the same value twice
 * in a row, so values that are new each time take no space there. Until then only its hash is remembered: a value may be a slice of a large
 * head, which V8 would keep in memory as long as the connection.
 *
 * Strings are sent without Huffman coding. It would save a quarter of the bytes that the table leaves, and take more time than the rest of
 * the encoding.
 */
export class HpackEncoder {
  readonly #known = new Map<string, Known>()
  /** Sizes of the entries, the oldest first. */
  #sizes: number[] = []
  #bytes = 0
  #maxBytes = TABLE_BYTES
  /** Numbers of the next entry and of the oldest one. Indexes count back from the newest. */
  #next = 1
  #oldest = 1
  #resizedTo: number | undefined
  #at = 0

  /** Call when the client has set how large the table may be. */
  resize(maxBytes: number): void {
    const bytes = Math.min(maxBytes, TABLE_BYTES)
    if (bytes === this.#maxBytes) return
    // The client must also learn that the table was smaller in between. So the table starts over empty.
    this.#shrinkTo(0)
    this.#maxBytes = bytes
    this.#resizedTo = bytes
  }

  /**
   * @param offset bytes to leave free before the list
   * @param fields name, value, name, value… with names in lower case, one character a byte
   */
  encode(offset: number, status: number | undefined, fields: readonly string[]): Buffer {
    this.#at = offset
    this.#reserve(64)
    if (this.#resizedTo !== undefined) {
      this.#writeInteger(0x20, 5, 0)
      this.#writeInteger(0x20, 5, this.#resizedTo)
      this.#resizedTo = undefined
    }
    if (status !== undefined) this.#writeField(':status', String(status))
    for (let i = 0; i < fields.length; i += 2) this.#writeField(fields[i] ?? '', fields[i + 1] ?? '')
    const encoded = Buffer.allocUnsafe(this.#at)
    room.copy(encoded, 0, 0, this.#at)
    return encoded
  }

  #writeField(name: string, value: string): void {
    this.#reserve(name.length + value.length + 16)
    const nameIndex = staticNames.get(name)
    if (nameIndex !== undefined && staticTable[2 * nameIndex - 1] !== '') {
      const index = staticFields.get(`${name}:${value}`)
      if (index !== undefined) return this.#writeInteger(0x80, 7, index)
    }
    if (neverIndexed.has(name)) return this.#writeLiteral(0x10, 4, nameIndex, name, value)
    const bytes = name.length + value.length + ENTRY_OVERHEAD
    if (bytes > Math.min(MAX_ENTRY_LENGTH, this.#maxBytes))
      return this.#writeLiteral(0, 4, nameIndex, name, value)
    const known = this.#known.get(name)
    if (known === undefined) {
      if (this.#known.size < MAX_NAMES) this.#known.set(name, { hash: hashOf(value), value: '', entry: 0 })
      return this.#writeLiteral(0, 4, nameIndex, name, value)
    }
    const index = this.#indexOf(known)
    if (index !== undefined && known.value === value) return this.#writeInteger(0x80, 7, index)
    const hash = hashOf(value)
    if (known.hash !== hash) {
      known.hash = hash
      known.entry = 0
      return this.#writeLiteral(0, 4, index ?? nameIndex, name, value)
    }
    this.#writeLiteral(0x40, 6, nameIndex, name, value)
    known.value = ownCopy(value)
    this.#shrinkTo(this.#maxBytes - bytes)
    this.#sizes.push(bytes)
    this.#bytes += bytes
    known.entry = this.#next++
  }

  #indexOf({ entry }: Known): number | undefined {
    return entry >= this.#oldest ? STATIC_ENTRIES + this.#next - entry : undefined
  }

  #shrinkTo(bytes: number): void {
    while (this.#bytes > bytes) {
      this.#bytes -= this.#sizes.shift() ?? 0
      this.#oldest++
    }
  }

  #writeLiteral(
    bits: number,
    prefixBits: number,
    nameIndex: number | undefined,
    name: string,
    value: string,
  ): void {
    if (nameIndex === undefined) {
      room[this.#at++] = bits
      this.#writeText(name)
    } else this.#writeInteger(bits, prefixBits, nameIndex)
    this.#writeText(value)
  }

  #writeText(text: string): void {
    this.#writeInteger(0, 7, text.length)
    this.#at += room.write(text, this.#at, 'latin1')
  }

  #writeInteger(bits: number, prefixBits: number, value: number): void {
    const mask = (1 << prefixBits) - 1
    if (value < mask) {
      room[this.#at++] = bits | value
      return
    }
    room[this.#at++] = bits | mask
    let rest = value - mask
    for (; rest >= 0x80; rest >>>= 7) room[this.#at++] = (rest & 0x7f) | 0x80
    room[this.#at++] = rest
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= room.length) return
    const larger = Buffer.allocUnsafeSlow(2 * (this.#at + bytes))
    room.copy(larger, 0, 0, this.#at)
    room = larger
  }
}
