import {
  formatAddress,
  isInRange,
  isIpv4,
  parseAddress,
  parseAddressRange,
  type AddressRange,
  type IpAddress,
} from './ip-address.ts'

/** Whose request it is. */
export type ClientAddress = {
  /** Canonical text: IPv4 dotted, IPv6 as RFC 5952 has it, without a zone. */
  readonly address: string
  /** Whom the address counts as: the IPv4 address itself; for IPv6 its prefix, such as `2001:db8::/64`. */
  readonly prefix: string
}

/** The other end of a connection. It does not change: read once, it serves all requests of the connection. */
export type Peer = {
  /** Canonical text. */
  readonly address: string
  /** A trusted proxy: what it says in X-Forwarded-For is believed. */
  readonly trusted: boolean
  /** Whom a request counts as that names no other client, or that may not. */
  readonly client: ClientAddress
}

export type AddressReader = {
  /**
   * @param remoteAddress of the socket, with or without a zone
   * @returns undefined for what is no address: the other end is gone, and the system knows it no more. What it has sent is
   * nobody's, or whoever resets each connection behind a request would share a limit of their own.
   */
  readPeer(remoteAddress: string | undefined): Peer | undefined

  /**
   * Whose request it is: the right-most address in X-Forwarded-For that is no trusted proxy, the left-most when all are.
   * Each proxy appends whom it was asked by, so a client can write only to the left of where a trusted proxy vouches. A
   * malformed entry ends the walk: the request counts as the last address before it that was sound.
   *
   * @param forwardedFor the field's value; of several lines, in the order in which they came
   */
  readClientAddress(peer: Peer, forwardedFor: string | readonly string[] | undefined): ClientAddress
}

/** Bounds the work on a field that a client filled with the addresses of trusted proxies. */
const mostHops = 64
const longestEntry = '[0000:0000:0000:0000:0000:ffff:255.255.255.255]:65535'.length
const entryForms = /^(?:\[([0-9a-f:.]*:[0-9a-f:.]*)\](?::\d{1,5})?|(\d[\d.]*)(?::\d{1,5})?|([0-9a-f:.]+))$/i

/**
 * @param trustedProxies addresses and CIDRs
 * @throws RangeError for an entry that is neither
 */
export function createAddressReader(trustedProxies: readonly string[]): AddressReader {
  const ranges = trustedProxies.map(readRange)
  const isTrusted = (address: IpAddress): boolean => ranges.some((range) => isInRange(address, range))

  return {
    readPeer(remoteAddress) {
      const [withoutZone = ''] = remoteAddress?.split('%', 1) ?? []
      const address = parseAddress(withoutZone)
      if (!address) return undefined
      const client = toClientAddress(address)
      return { address: client.address, trusted: isTrusted(address), client }
    },

    readClientAddress(peer, forwardedFor) {
      if (!peer.trusted || forwardedFor === undefined) return peer.client
      const field = typeof forwardedFor === 'string' ? forwardedFor : forwardedFor.join(',')
      let lastSound: IpAddress | undefined
      let end = field.length
      for (let hop = 0; hop < mostHops && end >= 0; hop++) {
        const comma = field.lastIndexOf(',', end - 1)
        const address = parseEntry(field, comma + 1, end)
        if (!address) break
        lastSound = address
        if (!isTrusted(address)) break
        end = comma
      }
      return lastSound ? toClientAddress(lastSound) : peer.client
    },
  }
}

/** Whom an address counts as that is the whole of a field, `1.2.3.4`, IPv6, `[IPv6]`, each also with a port. */
export function readClientField(value: string): ClientAddress | undefined {
  const address = parseEntry(value, 0, value.length)
  return address && toClientAddress(address)
}

function readRange(text: string): AddressRange {
  const range = parseAddressRange(text)
  if (!range) throw new RangeError(`'${text}' is neither an address nor a CIDR such as 10.0.0.0/8`)
  return range
}

/** Within its /64, a host picks IPv6 addresses as it likes (RFC 8981), so the /64 is what counts. */
function toClientAddress(ip: IpAddress): ClientAddress {
  const address = formatAddress(ip)
  if (isIpv4(ip)) return { address, prefix: address }
  return { address, prefix: `${formatAddress([...ip.slice(0, 4), 0, 0, 0, 0])}/64` }
}

/** Reads `1.2.3.4`, `1.2.3.4:port`, IPv6, `[IPv6]` or `[IPv6]:port`, with spaces and tabs around it. */
function parseEntry(field: string, from: number, to: number): IpAddress | undefined {
  let start = from
  let end = to
  while (start < end && isBlank(field.charCodeAt(start))) start += 1
  while (end > start && isBlank(field.charCodeAt(end - 1))) end -= 1
  if (end - start > longestEntry) return undefined
  const [, bracketed, ipv4, ipv6] = entryForms.exec(field.slice(start, end)) ?? []
  return parseAddress(bracketed ?? ipv4 ?? ipv6 ?? '')
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}
