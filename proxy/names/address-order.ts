import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

type Kind = 'IPv4' | 'loopback' | 'link-local' | 'unique-local' | 'global'

/**
 * Sorts addresses in the order in which to connect to them: IPv6 first where this machine has an IPv6 address of the same kind, otherwise
 * IPv4. This is the order of `getaddrinfo` for the addresses of one name (RFC 6724 section 6, rules 1, 2, 5 and 6).
 *
 * @param own addresses of this machine
 */
export function orderAddresses(addresses: readonly string[], own = ownAddresses()): readonly string[] {
  const kinds = new Set(own.map(kindOf))
  const rank = (address: string): number => {
    const kind = kindOf(address)
    if (kind === 'IPv4') return 1
    return kinds.has(kind) ? 0 : 2
  }
  return [...new Set(addresses)].sort((one, other) => rank(one) - rank(other))
}

/**
 * Leaves out the IPv6 addresses to which this machine has no way, as in containers without IPv6: it has neither an address of the same kind
 * nor, for global and unique-local addresses, one of the other of the two. If all would be left out, all are returned.
 *
 * @param own addresses of this machine
 */
export function reachableAddresses(addresses: readonly string[], own = ownAddresses()): readonly string[] {
  const kinds = new Set(own.map(kindOf))
  const routed: readonly Kind[] = ['global', 'unique-local']
  const isReachable = (address: string): boolean => {
    const kind = kindOf(address)
    if (kind === 'IPv4' || kinds.has(kind)) return true
    return routed.includes(kind) && routed.some((other) => kinds.has(other))
  }
  const reachable = addresses.filter(isReachable)
  return reachable.length === 0 ? addresses : reachable
}

function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address))
}

function kindOf(address: string): Kind {
  if (isIP(address) === 4) return 'IPv4'
  const start = address.toLowerCase()
  if (start === '::1') return 'loopback'
  if (/^fe[89ab]/.test(start)) return 'link-local'
  return /^f[cd]/.test(start) ? 'unique-local' : 'global'
}
