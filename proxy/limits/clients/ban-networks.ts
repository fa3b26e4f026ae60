import { formatAddress, networkOf, parseAddressRange } from '../../request/addresses/ip-address.ts'
import type { Ban, EntryId } from './client-entry.ts'

/** The prefix length of one site's IPv6 network (RFC 6177): it has 65,536 networks of 64 bits, each of which counts as a client. */
const SITE_BITS = 48

/**
 * The bans that rules have made of clients in one IPv6 network of 48 bits. They are bounded: the owner of such a network could
 * fill the table of bans with it, and nobody else would be banned any more.
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

  /** The bans in the same network; undefined if the ban is not of an IPv6 address, or is of a whole site, or an operator's. */
  idsBeside(ban: Ban): ReadonlySet<EntryId> | undefined {
    const network = networkOfBan(ban)
    return network === undefined ? undefined : this.#ids.get(network)
  }
}

function networkOfBan({ by, partitionKey }: Ban): string | undefined {
  // The key of an IPv4 address, and one that is a hash, has no colon after the second character.
  if (by !== 'rule' || partitionKey.startsWith('h:') || !partitionKey.includes(':')) return undefined
  const range = parseAddressRange(partitionKey)
  return range && range.bits > SITE_BITS ? formatAddress(networkOf(range.address, SITE_BITS)) : undefined
}
