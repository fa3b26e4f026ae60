import type { ClientRequest, ConnectionAddresses } from '../../http/message/client-request.ts'
import { compileRanges } from './address-ranges.ts'
import { parseEntry, parseField } from './address-header.ts'
import {
  formatAddress,
  formatNetwork,
  isIpv4,
  parseAddress,
  withoutNat64,
  type IpAddress,
} from './ip-address.ts'

/** The client that a request comes from. */
export type ClientAddress = {
  /** The canonical text, without a zone: dotted for IPv4, including clients behind NAT64; as in RFC 5952 for IPv6. */
  readonly address: string
  /**
   * The key that the client counts under: its IPv4 address, or the network of its IPv6 address, such as `2001:db8::/64`. With a prefix
   * length of 128, the IPv6 address itself.
   */
  readonly prefix: string
}

/** Stands for a client whose address has not been read. */
export const unknownClient: ClientAddress = { address: '', prefix: '' }

/** The peer of a connection. Read once for all requests of the connection, because it does not change. */
export type Peer = {
  /** The canonical text, including a NAT64 prefix. Proxies are trusted by this address. */
  readonly address: string
  /** The peer is a trusted proxy, which is believed about its client. */
  readonly trusted: boolean
  /** The client of requests in which no trusted proxy names another one. */
  readonly client: ClientAddress
}

export type AddressReader = {
  /** The header in which trusted proxies name their client, in lower case. */
  readonly header: string

  /**
   * @param remoteAddress the socket's remote address, with or without a zone
   * @returns undefined without an address: the connection was reset, and the system no longer knows its peer. Its requests must be dropped,
   *   because clients that reset each connection after a request would otherwise share a separate limit.
   */
  readPeer(remoteAddress: string | undefined): Peer | undefined

  /**
   * Returns the client of a request. In X-Forwarded-For it is the right-most address that is not a trusted proxy, or the left-most one if
   * all are. Each proxy appends the address of its client, so a client can only forge entries to the left of those that trusted proxies
   * added. A malformed entry ends the search, and the request counts for the valid address to its right.
   *
   * Any other header holds one address. If it is missing, malformed or repeated, the client is `peer.client`: of several headers, it is
   * unknown which one the proxy sent.
   *
   * @param value the value of the header; several values are in the order in which they were sent
   */
  readClientAddress(peer: Peer, value: string | readonly string[] | undefined): ClientAddress

  /**
   * Reads a header value that is a single address: `1.2.3.4`, IPv6 or `[IPv6]`, each with an optional port or zone.
   *
   * @param name the header, in lower case
   */
  readClientField(name: string, value: string): ClientAddress | undefined
}

/** A host can choose any IPv6 address within its /64 (RFC 8981). */
const DEFAULT_IPV6_PREFIX = 64

/** Bounds the work on a header that a client fills with addresses of trusted proxies. */
const MAX_HOPS = 64

/**
 * The address of Cloudflare's Workers, which is in Cloudflare's networks: a proxy there names it as its client. A Worker is a program of
 * any customer of Cloudflare, and has written the addresses before this one in `X-Forwarded-For`
 * (https://developers.cloudflare.com/fundamentals/reference/http-headers/, `CF-Connecting-IP`).
 */
const isOfWorkers = compileRanges(['2a06:98c0:3600::103'])

export type AddressOptions = {
  /** The header in which trusted proxies name their client, in lower case. Default `x-forwarded-for`. */
  readonly header?: string
  /** The number of leading bits of an IPv6 address by which clients are counted, 32 to 128. Default 64. */
  readonly ipv6Prefix?: number
  /** Additional trusted proxies, by the canonical text of their addresses. They may change at any time. */
  readonly hosts?: Pick<ReadonlySet<string>, 'has'> | undefined
}

/**
 * @param trustedProxies addresses and CIDRs
 * @throws RangeError for an entry that is neither
 */
export function createAddressReader(
  trustedProxies: readonly string[],
  { header = 'x-forwarded-for', ipv6Prefix = DEFAULT_IPV6_PREFIX, hosts }: AddressOptions = {},
): AddressReader {
  const ranges = compileRanges(trustedProxies)
  const isInRanges = (address: IpAddress): boolean => ranges(address) && !isOfWorkers(address)
  const isTrusted = (address: IpAddress): boolean =>
    isInRanges(address) || (hosts?.has(formatAddress(address)) ?? false)
  const toClientAddress = (ip: IpAddress): ClientAddress => countedBy(withoutNat64(ip), ipv6Prefix)

  /** Returns the left-most address that trusted proxies vouch for. */
  function followChain(field: string): IpAddress | undefined {
    let lastValid: IpAddress | undefined
    let end = field.length
    for (let hop = 0; hop < MAX_HOPS && end >= 0; hop++) {
      const comma = field.lastIndexOf(',', end - 1)
      const address = parseEntry(field, comma + 1, end)
      if (!address) break
      lastValid = address
      if (!isTrusted(address)) break
      end = comma
    }
    return lastValid
  }
  const read = header === 'x-forwarded-for' ? followChain : (field: string) => parseField(header, field)

  return {
    header,

    readPeer(remoteAddress) {
      const [withoutZone = ''] = remoteAddress?.split('%', 1) ?? []
      const ip = parseAddress(withoutZone)
      if (!ip) return undefined
      const address = formatAddress(ip)
      const client = toClientAddress(ip)
      const trusted = isInRanges(ip)
      if (trusted || !hosts) return { address, trusted, client }
      return {
        address,
        // Checked for each request: the name of a proxy, such as nginx, may be resolved only after the proxy has opened the connection.
        get trusted() {
          return hosts.has(address)
        },
        client,
      }
    },

    readClientAddress(peer, value) {
      if (!peer.trusted || value === undefined) return peer.client
      const address = read(typeof value === 'string' ? value : value.join(','))
      return address ? toClientAddress(address) : peer.client
    },

    readClientField(name, value) {
      const address = parseField(name, value)
      return address && toClientAddress(address)
    },
  }
}

function countedBy(ip: IpAddress, ipv6Prefix: number): ClientAddress {
  const address = formatAddress(ip)
  if (isIpv4(ip) || ipv6Prefix === 128) return { address, prefix: address }
  return { address, prefix: formatNetwork(ip, { ipv4: 32, ipv6: ipv6Prefix }) }
}

export type PeerOptions = {
  readonly addresses: AddressReader
  /** The connections of the listener that the request has arrived at. */
  readonly connections: {
    /** Returns the address of a connection's peer; undefined if it has disconnected. */
    addressOf(socket: ConnectionAddresses): string | undefined
    /** Whether a trusted proxy has declared that a connection has no client to name. Its requests do not name one either. */
    isWithoutClient(socket: ConnectionAddresses): boolean
  }
}

/** Keyed by the socket, which all requests of a connection share. */
const peers = new WeakMap<object, Peer>()

/**
 * Returns the peer of a request's connection, which is read once per connection.
 *
 * @returns undefined if the connection has closed and its peer was never read
 */
export function peerOf({ socket }: Pick<ClientRequest, 'socket'>, options: PeerOptions): Peer | undefined {
  const known = peers.get(socket)
  if (known) return known
  const { addresses, connections } = options
  const read = addresses.readPeer(connections.addressOf(socket))
  const peer = read && connections.isWithoutClient(socket) ? { ...read, trusted: false } : read
  if (peer) peers.set(socket, peer)
  return peer
}
