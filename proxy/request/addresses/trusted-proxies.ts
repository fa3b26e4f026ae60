import { nearestWord } from '../../../shared/settings/did-you-mean.ts'
import { compileRanges, readAddress } from './address-ranges.ts'
import { parseAddressRange } from './ip-address.ts'

/** The networks that `trustedProxies` accepts by name. */
export const namedNetworks: ReadonlyMap<string, readonly string[]> = new Map([
  ['loopback', ['127.0.0.0/8', '::1']],
  // RFC 1918 section 3, RFC 4193 section 3.1
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']],
  // https://www.cloudflare.com/ips-v4 and https://www.cloudflare.com/ips-v6, as of 11 February 2026
  [
    'cloudflare',
    [
      '103.21.244.0/22',
      '103.22.200.0/22',
      '103.31.4.0/22',
      '104.16.0.0/13',
      '104.24.0.0/14',
      '108.162.192.0/18',
      '131.0.72.0/22',
      '141.101.64.0/18',
      '162.158.0.0/15',
      '172.64.0.0/13',
      '173.245.48.0/20',
      '188.114.96.0/20',
      '190.93.240.0/20',
      '197.234.240.0/22',
      '198.41.128.0/17',
      '2400:cb00::/32',
      '2405:8100::/32',
      '2405:b500::/32',
      '2606:4700::/32',
      '2803:f800::/32',
      '2a06:98c0::/29',
      '2c0f:f248::/32',
    ],
  ],
])

const isInCloudflare = compileRanges(namedNetworks.get('cloudflare') ?? [])

/** Whether a text is an address in Cloudflare's networks. */
export function isCloudflare(text: string): boolean {
  const address = readAddress(text)
  return address !== undefined && isInCloudflare(address)
}

/** Maximum number of host names, because all of them are looked up again each minute. */
export const MAX_HOSTS = 16

export type TrustedProxies = {
  /** Addresses and CIDRs. */
  readonly ranges: readonly string[]
  /** Host names that have to be looked up. */
  readonly hosts: readonly string[]
}

/** Separates the entries of `trustedProxies`: addresses, CIDRs, names of networks, and host names. */
export function sortTrustedProxies(entries: readonly string[]): TrustedProxies {
  const ranges: string[] = []
  const hosts = new Set<string>()
  for (const entry of entries) {
    const network = namedNetworks.get(entry)
    if (network) ranges.push(...network)
    else if (parseAddressRange(entry)) ranges.push(entry)
    else hosts.add(entry.toLowerCase())
  }
  return { ranges, hosts: [...hosts] }
}

/**
 * Whether a text can be a host name. A text that looks like an address, such as `10.0.0` or `10.0.0.256`, cannot, because its last label is
 * a number (https://url.spec.whatwg.org/#ends-in-a-number-checker).
 */
export function isHostName(text: string): boolean {
  return (
    text.length <= 253 &&
    /^[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_][a-z0-9_-]{0,62})*\.?$/i.test(text) &&
    !/(^|\.)(\d+|0x[\da-f]*)\.?$/i.test(text)
  )
}

/** Returns the name of the network that a host name was probably meant to be. */
export function suggestNetwork(host: string): string | undefined {
  return host.includes('.') ? undefined : nearestWord(host, [...namedNetworks.keys()])
}
