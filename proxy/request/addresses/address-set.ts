import { doAtOnce, type Steps } from '../../../shared/steps.ts'
import { formatAddress, networkOf, type AddressRange, type IpAddress } from './ip-address.ts'

/**
 * A set of possibly thousands of addresses and networks. A lookup's cost depends on the number of different prefix lengths, not of entries.
 */
export type AddressSet = {
  has(address: IpAddress): boolean
  /** Whether a single range of the set contains all addresses of a range. */
  contains(range: AddressRange): boolean
}

/** @param ranges may overlap */
export function createAddressSet(ranges: readonly AddressRange[]): AddressSet {
  return doAtOnce(createAddressSetInSteps(ranges))
}

/** Does the same in steps, one per range. */
export function* createAddressSetInSteps(ranges: Iterable<AddressRange>): Steps<AddressSet> {
  /** Networks by prefix length. */
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
