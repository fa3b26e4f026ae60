import { partName, type PartitionPart, type PrefixLengths, type SinglePart } from '../../policy/partition.ts'

/** Minimum prefix lengths. A larger network does not have a single owner; to count all clients together, use `global`. */
const MIN_IPV4 = 8
const MIN_IPV6 = 16

/** Whether a part of a key is meant as a network, such as `ip/24/48`. */
export function meansNetwork(text: string): boolean {
  return text.startsWith('ip/')
}

/**
 * Reads `ip/24/48`, the prefix lengths for IPv4 and IPv6.
 *
 * @returns the prefix lengths, or the error message if the text is malformed
 */
export function readNetworkKey(text: string): PrefixLengths | string {
  const [, first, second] = /^ip\/([1-9]\d{0,2})\/([1-9]\d{0,2})$/.exec(text) ?? []
  if (first === undefined || second === undefined)
    return 'needs a prefix length for IPv4 and one for IPv6, such as ip/24/48'
  const [ipv4, ipv6] = [Number(first), Number(second)]
  if (ipv4 > 32 && ipv4 <= 128 && ipv6 >= MIN_IPV4 && ipv6 <= 32)
    return `needs the prefix length for IPv4 first: ip/${ipv6}/${ipv4}`
  if (ipv4 < MIN_IPV4 || ipv4 > 32)
    return `needs a prefix length of ${MIN_IPV4} to 32 for IPv4, such as ip/24/48; for all clients together use global`
  if (ipv6 < MIN_IPV6 || ipv6 > 128)
    return `needs a prefix length of ${MIN_IPV6} to 128 for IPv6, such as ip/24/48; for all clients together use global`
  return { ipv4, ipv6 }
}

/** Whether a key has several networks of the same address, of which the smallest alone would decide. */
export function repeatsNetwork(parts: readonly PartitionPart[]): boolean {
  return new Set(parts.filter(isNetwork).map(partName)).size > 1
}

function isNetwork(part: PartitionPart): part is SinglePart {
  return part.kind === 'ip' || part.kind === 'network'
}
