/**
 * An address as its eight 16-bit groups. IPv4 is stored as IPv4-mapped IPv6 (RFC 4291 section 2.5.5.2), so that both spellings of an
 * address have the same value.
 */
export type IpAddress = readonly number[]

/** All addresses whose first `bits` bits are those of `address`. */
export type AddressRange = { readonly address: IpAddress; readonly bits: number }

const MAX_IPV6_LENGTH = '0000:0000:0000:0000:0000:ffff:255.255.255.255'.length

/**
 * Reads an address strictly. Rejects texts that other parsers may read as a different address: leading zeros, hex, short forms, a zone, or
 * blanks around it.
 */
export function parseAddress(text: string): IpAddress | undefined {
  if (text.length > MAX_IPV6_LENGTH) return undefined
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text)
}

/**
 * Reads an address or a CIDR such as `10.0.0.0/8` or `fd00::/8`. Bits after the prefix are ignored. A range of IPv4
 * addresses may also be written mapped, `::ffff:10.0.0.0/104`.
 */
export function parseAddressRange(text: string): AddressRange | undefined {
  const slash = text.indexOf('/')
  const address = parseAddress(slash === -1 ? text : text.slice(0, slash))
  if (!address) return undefined
  if (slash === -1) return { address, bits: 128 }
  const prefix = text.slice(slash + 1)
  if (!/^(?:0|[1-9]\d{0,2})$/.test(prefix)) return undefined
  const bits = Number(prefix) + (text.includes(':') ? 0 : 96)
  return bits <= 128 ? { address, bits } : undefined
}

/** Parses an address or a CIDR of clients. Converts a range within the NAT64 prefix to that of the IPv4 clients, as `withoutNat64` does. */
export function parseClientRange(text: string): AddressRange | undefined {
  const range = parseAddressRange(text)
  if (!range || range.bits <= NAT64_BITS) return range
  const address = withoutNat64(range.address)
  return address === range.address ? range : { ...range, address }
}

/**
 * Returns the IPv4 address in an address of NAT64's well-known prefix, `64:ff9b::/96` (RFC 6052 section 2.1), which translators give to an
 * IPv4 client. Returns every other address unchanged, including one with a non-global IPv4 address, which no translator makes (section
 * 3.1), so that no client gets an address of this machine or of a private network.
 */
export function withoutNat64(address: IpAddress): IpAddress {
  if (address[0] !== 0x64 || !isInRange(address, nat64)) return address
  const ipv4 = [0, 0, 0, 0, 0, 0xffff, ...address.slice(6)]
  return notGlobal.some((range) => isInRange(ipv4, range)) ? address : ipv4
}

/**
 * Whether the range, as written, includes clients behind NAT64 that the range from `parseClientRange` does not match, because clients are
 * matched by their IPv4 addresses.
 */
export function missesNat64(range: AddressRange): boolean {
  if (range.bits <= NAT64_BITS)
    return isInRange(nat64.address, range) && !isInRange([0, 0, 0, 0, 0, 0xffff, 0, 0], range)
  if (!isInRange(range.address, nat64) || withoutNat64(range.address) !== range.address) return false
  const ipv4 = [0, 0, 0, 0, 0, 0xffff, ...range.address.slice(6)]
  return !notGlobal.some((each) => each.bits <= range.bits && isInRange(ipv4, each))
}

/** Whether the address has the first `bits` bits of the range. An IPv4 range contains only IPv4 addresses; `::/0` contains all. */
export function isInRange(address: IpAddress, range: AddressRange): boolean {
  const wholeGroups = range.bits >> 4
  for (let i = 0; i < wholeGroups; i++) if (address[i] !== range.address[i]) return false
  const rest = range.bits & 15
  return rest === 0 || ((address[wholeGroups] ?? 0) ^ (range.address[wholeGroups] ?? 0)) >> (16 - rest) === 0
}

/** Returns the address with all bits after the first `bits` set to 0. */
export function networkOf(address: IpAddress, bits: number): IpAddress {
  return address.map((group, i) => {
    const kept = Math.min(16, Math.max(0, bits - 16 * i))
    return group & (0xffff << (16 - kept))
  })
}

/** Returns the canonical text: dotted for IPv4, as in RFC 5952 for IPv6. */
export function formatAddress(address: IpAddress): string {
  if (isIpv4(address)) {
    const high = address[6] ?? 0
    const low = address[7] ?? 0
    return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
  }
  const { start, length } = longestZeroRun(address)
  let text = ''
  for (let i = 0; i < 8; i++) {
    if (length > 1 && i === start) {
      text += '::'
      i += length - 1
    } else {
      if (i > 0 && !text.endsWith(':')) text += ':'
      text += (address[i] ?? 0).toString(16)
    }
  }
  return text
}

/** Returns the canonical text of a network, such as `2001:db8::/64`; a single address has no prefix length. */
export function formatNetwork(
  address: IpAddress,
  lengths: { readonly ipv4: number; readonly ipv6: number },
): string {
  const [length, all] = isIpv4(address) ? [lengths.ipv4, 32] : [lengths.ipv6, 128]
  if (length >= all) return formatAddress(address)
  return `${formatAddress(networkOf(address, length + 128 - all))}/${length}`
}

/** Whether it is an IPv4 address, which is stored as an IPv4-mapped one. */
export function isIpv4(address: IpAddress): boolean {
  for (let i = 0; i < 5; i++) if (address[i] !== 0) return false
  return address[5] === 0xffff
}

function parseIpv4(text: string): IpAddress | undefined {
  let value = 0
  let octets = 0
  let octet = -1
  for (let i = 0; i <= text.length; i++) {
    const code = i === text.length ? DOT : text.charCodeAt(i)
    const digit = code - 0x30
    if (digit >= 0 && digit <= 9) {
      if (octet === 0) return undefined
      octet = octet === -1 ? digit : octet * 10 + digit
      if (octet > 255) return undefined
    } else if (octet !== -1 && code === DOT) {
      value = value * 256 + octet
      octets += 1
      octet = -1
    } else return undefined
  }
  return octets === 4 ? [0, 0, 0, 0, 0, 0xffff, Math.floor(value / 65_536), value % 65_536] : undefined
}

const DOT = 0x2e
const COLON = 0x3a

/** Parses the texts that Node's `isIPv6` accepts, except zones. Takes one pass, because it runs for each request of an IPv6 client. */
function parseIpv6(text: string): IpAddress | undefined {
  const groups = [0, 0, 0, 0, 0, 0, 0, 0]
  let count = 0
  /** The number of groups before the `::`, or -1. */
  let gap = -1
  let group = 0
  let digits = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === COLON) {
      if (digits > 0) {
        if (count === 8 || i === text.length - 1) return undefined
        groups[count++] = group
        group = digits = 0
      } else {
        if (gap !== -1 || (i === 0 && text.charCodeAt(++i) !== COLON)) return undefined
        gap = count
      }
      continue
    }
    if (code === DOT) {
      const ipv4 = digits > 0 && count <= 6 ? parseIpv4(text.slice(i - digits)) : undefined
      if (!ipv4) return undefined
      groups[count++] = ipv4[6] ?? 0
      groups[count++] = ipv4[7] ?? 0
      digits = 0
      break
    }
    const digit = hexDigit(code)
    if (digit === -1 || ++digits > 4) return undefined
    group = group * 16 + digit
  }
  if (digits > 0) {
    if (count === 8) return undefined
    groups[count++] = group
  }
  if (gap === -1) return count === 8 ? groups : undefined
  if (count === 8) return undefined
  for (let i = 7, from = count - 1; i >= gap; i--, from--) groups[i] = from >= gap ? (groups[from] ?? 0) : 0
  return groups
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

/** Returns the run of zero groups that `::` replaces: the longest run, or the first of several equally long ones. */
function longestZeroRun(address: IpAddress): { start: number; length: number } {
  let longest = { start: 0, length: 0 }
  let start = 0
  for (let i = 0; i <= 8; i++) {
    if (address[i] === 0) continue
    if (i - start > longest.length) longest = { start, length: i - start }
    start = i + 1
  }
  return longest
}

const NAT64_BITS = 96
const nat64: AddressRange = { address: [0x64, 0xff9b, 0, 0, 0, 0, 0, 0], bits: NAT64_BITS }
/** IPv4 networks that are not global (RFC 6890): this network, private, carrier, loopback, link-local, and everything from multicast on. */
const notGlobal = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '224.0.0.0/3',
].flatMap((text) => parseAddressRange(text) ?? [])
