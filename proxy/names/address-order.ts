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
