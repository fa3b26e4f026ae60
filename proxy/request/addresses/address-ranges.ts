import { isIP } from 'node:net'
import {
  isInRange,
  parseAddress,
  parseAddressRange,
  type AddressRange,
  type IpAddress,
} from './ip-address.ts'

/**
 * Reads addresses and CIDRs, such as `10.0.0.0/8`.
 *
 * @returns a function that tells whether an address is in one of them
 * @throws RangeError for an entry that is neither
 */
export function compileRanges(texts: readonly string[]): (address: IpAddress) => boolean {
  const ranges = texts.map(readRange)
  return (address) => ranges.some((range) => isInRange(address, range))
}

const isInLoopback = compileRanges(['127.0.0.0/8', '::1'])

const isInPrivateNetwork = compileRanges([
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '::1',
  'fc00::/7',
  'fe80::/10',
])

/** Whether a text is an address that only this machine can reach. False for a host name. */
export function isLoopback(text: string): boolean {
  const address = readAddress(text)
  return address !== undefined && isInLoopback(address)
}

/** Whether a text is an address of a private network (RFC 1918, RFC 4193) or a carrier (RFC 6598), or a link-local or loopback address. */
export function isPrivate(text: string): boolean {
  const address = readAddress(text)
  return address !== undefined && isInPrivateNetwork(address)
}

/** Parses an address. Ignores an IPv6 zone, which does not distinguish clients. Returns undefined for a text that is not an address. */
export function readAddress(text: string): IpAddress | undefined {
  const [address = ''] = text.split('%', 1)
  return isIP(text) === 0 ? undefined : parseAddress(address)
}

function readRange(text: string): AddressRange {
  const range = parseAddressRange(text)
  if (!range) throw new RangeError(`'${text}' is neither an address nor a CIDR such as 10.0.0.0/8`)
  return range
}
