import { doAtOnce, type Steps } from '../../../shared/steps.ts'
import { formatAddress, networkOf, type AddressRange, type IpAddress } from './ip-address.ts'

/** A set of addresses and networks, perhaps thousands: a lookup costs the same for one of each length as for many. */
export type AddressSet = {
  has(address: IpAddress): boolean
  /** Whether all addresses of a range are in one of the set's. */
  contains(range: AddressRange): boolean
}

/** @param ranges may overlap */
export function createAddressSet(ranges: readonly AddressRange[]): AddressSet {
  return doAtOnce(createAddressSetInSteps(ranges))
}

/** The same in steps, one for each range. */
export function* createAddressSetInSteps(ranges: Iterable<AddressRange>): Steps<AddressSet> {
  /** Networks by the length of their prefix. */
  const networks = new Map<number, Set<string>>()
  for (const { address, bits } of ranges) {
    const known = networks.get(bits) ?? new Set()
    networks.set(bits, known.add(formatAddress(networkOf(address, bits))))
    yield
  }

  function isIn(address: IpAddress, maxBits: number): boolean {
    for (const [bits, known] of networks)
      if (bits <= maxBits && known.has(formatAddress(networkOf(address, bits)))) return true
    return false
  }

  return { has: (address) => isIn(address, 128), contains: ({ address, bits }) => isIn(address, bits) }
}
