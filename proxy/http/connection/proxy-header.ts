import { isIPv4, isIPv6 } from 'node:net'
import { GrowingBuffer } from '../message/growing-buffer.ts'

/** A parsed PROXY header, and its length in bytes. */
type ProxyHeader = {
  /** The client's address; undefined if the proxy connects on its own behalf, or for a client without an IP address. */
  readonly address: string | undefined
  readonly bytes: number
}

/** The bytes received are not a PROXY header. */
export class ProxyHeaderError extends Error {
  override readonly name = 'ProxyHeaderError'
}

const signature1 = Buffer.from('PROXY ')
const signature2 = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const MAX_V1_BYTES = 107
/** Version 2 allows 64 KiB of extensions. Proxies send a few hundred bytes, with a certificate a few thousand. */
const MAX_V2_BYTES = 16 * 1024
const line1 = /^PROXY (?:UNKNOWN(?: [\x20-\x7e]*)?|TCP([46]) (\S+) (\S+) (\d{1,5}) (\d{1,5}))$/

/**
 * Version 2: one byte holds the version and, in its low four bits, the command; the next byte holds the address family and the transport.
 */
const local = 0x20
const proxied = 0x21
const tcp4 = 0x11
const tcp6 = 0x21
/** Address families that do not identify a client: unspecified, and Unix sockets. */
const withoutAddress = new Set([0x00, 0x31])
const V2_FIXED_BYTES = 16

/**
 * Reads a header of the PROXY protocol, version 1 or 2, from the first bytes of a connection
 * (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt). Extensions of version 2 are skipped.
 *
 * @returns undefined if the header is not complete yet
 * @throws {ProxyHeaderError}
 */
function parseProxyHeader(received: Buffer): ProxyHeader | undefined {
  if (startsLike(received, signature1)) return parseVersion1(received)
  if (startsLike(received, signature2)) return parseVersion2(received)
  throw new ProxyHeaderError('missing PROXY header')
}

/** Whether one is a prefix of the other. */
function startsLike(received: Buffer, signature: Buffer): boolean {
  const length = Math.min(received.length, signature.length)
  return received.compare(signature, 0, length, 0, length) === 0
}

function parseVersion1(received: Buffer): ProxyHeader | undefined {
  const end = received.subarray(0, MAX_V1_BYTES).indexOf('\r\n')
  if (end === -1) {
    if (received.length >= MAX_V1_BYTES) throw new ProxyHeaderError('version 1 header longer than 107 bytes')
    return undefined
  }
  const matched = line1.exec(received.toString('latin1', 0, end))
  if (!matched) throw new ProxyHeaderError('malformed version 1 header')
  const [, family, source, destination, ...ports] = matched
  const bytes = end + 2
  if (family === undefined) return { address: undefined, bytes }
  const isAddress = family === '4' ? isIPv4 : isIPv6
  if (![source, destination].every((address = '') => isAddress(address) && !address.includes('%')))
    throw new ProxyHeaderError('the address is not of the stated family')
  if (!ports.every(isPort)) throw new ProxyHeaderError('invalid port')
  return { address: source, bytes }
}

function isPort(text: string): boolean {
  return String(Number(text)) === text && Number(text) <= 65_535
}

function parseVersion2(received: Buffer): ProxyHeader | undefined {
  if (received.length < V2_FIXED_BYTES) return undefined
  const command = received.readUInt8(12)
  const family = received.readUInt8(13)
  const length = received.readUInt16BE(14)
  const bytes = V2_FIXED_BYTES + length
  if (command !== local && command !== proxied) throw new ProxyHeaderError('unknown version or command')
  if (bytes > MAX_V2_BYTES) throw new ProxyHeaderError('header larger than 16 KiB')
  const needed = command === local || withoutAddress.has(family) ? 0 : addressBytes(family)
  if (length < needed) throw new ProxyHeaderError('header too short for its addresses')
  if (received.length < bytes) return undefined
  return { address: needed === 0 ? undefined : addressAt(received, family), bytes }
}

function addressBytes(family: number): number {
  if (family === tcp4) return 12
  if (family === tcp6) return 36
  throw new ProxyHeaderError('unsupported address family or transport')
}

function addressAt(received: Buffer, family: number): string {
  if (family === tcp4) return received.subarray(V2_FIXED_BYTES, V2_FIXED_BYTES + 4).join('.')
  const groups = Array.from({ length: 8 }, (_, i) =>
    received.readUInt16BE(V2_FIXED_BYTES + 2 * i).toString(16),
  )
  return groups.join(':')
}

/** Reads a PROXY header that arrives in pieces of any size. */
export class ProxyHeaderReader {
  readonly #partial = new GrowingBuffer()

  /**
   * @returns undefined if the header is incomplete; otherwise the address that it names, and the bytes after it
   * @throws {ProxyHeaderError}
   */
  read(piece: Buffer): { readonly address: string | undefined; readonly rest: Buffer } | undefined {
    const before = this.#partial.length
    if (before > 0) this.#partial.append(piece)
    const header = parseProxyHeader(before > 0 ? this.#partial.bytes : piece)
    if (header) return { address: header.address, rest: piece.subarray(header.bytes - before) }
    if (before === 0) this.#partial.append(piece)
    return undefined
  }
}
