import { formatAddress, networkOf, parseAddressRange } from '../../request/addresses/ip-address.ts'
import type { Ban, EntryId } from './client-entry.ts'

/** The prefix length of one site's IPv6 network (RFC 6177). It contains 65,536 /64 networks, each of which counts as a client. */
const SITE_BITS = 48

/**
 * The bans made by rules, by the IPv6 /48 network of the client. Bans per network are bounded, because the owner of one network could
 * otherwise fill the table of bans, and no other client would be banned.
 */
export class BanNetworks {
  readonly #ids = new Map<string, Set<EntryId>>()

  add(id: EntryId, ban: Ban): void {
    const network = networkOfBan(ban)
    if (network === undefined) return
    const ids = this.#ids.get(network)
    if (ids) ids.add(id)
    else this.#ids.set(network, new Set([id]))
  }

  delete(id: EntryId, ban: Ban): void {
    const network = networkOfBan(ban)
    if (network === undefined) return
    const ids = this.#ids.get(network)
    ids?.delete(id)
    if (ids?.size === 0) this.#ids.delete(network)
  }

  /** The bans in the same network; undefined if the ban is not for an IPv6 address, is for a whole site, or was made by an operator. */
  idsBeside(ban: Ban): ReadonlySet<EntryId> | undefined {
    const network = networkOfBan(ban)
    return network === undefined ? undefined : this.#ids.get(network)
  }
}

function networkOfBan({ by, partitionKey }: Ban): string | undefined {
  // Keys of IPv4 addresses have no colon, and hashed keys only the one of `h:`.
  if (by !== 'rule' || partitionKey.startsWith('h:') || !partitionKey.includes(':')) return undefined
  const range = parseAddressRange(partitionKey)
  return range && range.bits > SITE_BITS ? formatAddress(networkOf(range.address, SITE_BITS)) : undefined
}
