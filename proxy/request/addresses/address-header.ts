import { trimBlanks } from '../../http/fields/trim-blanks.ts'
import { parseAddress, type IpAddress } from './ip-address.ts'

/** Interface names have up to 15 characters on Linux, and more on other systems. */
const MAX_ZONE_LENGTH = 64
const MAX_ENTRY_LENGTH = '[0000:0000:0000:0000:0000:ffff:255.255.255.255%]:65535'.length + MAX_ZONE_LENGTH
const entryForms =
  /^(?:\[([0-9a-f.]*:[0-9a-f:.]*)(?:%[\w.~%-]+)?\](?::\d{1,5})?|(\d[\d.]*)(?::\d{1,5})?|([0-9a-f.]*:[0-9a-f:.]*)(?:%[\w.~%-]+)?)$/i

/**
 * Reads `1.2.3.4`, `1.2.3.4:port`, IPv6, `[IPv6]` or `[IPv6]:port`, with spaces and tabs around it: the forms that nginx, HAProxy, Envoy,
 * Go's and Node's proxies, load balancers of AWS and Azure, and IIS write. Proxies in Go and Node also write the zone of a link-local
 * address, `fe80::1%eth0` (RFC 4007 section 11). It names the interface, and does not identify the client.
 *
 * Proxies that append a port to whatever address their socket has write `::ffff:1.2.3.4:12345` and `2001:db8::7:44321` too
 * (https://github.com/aspnet/BasicMiddleware/issues/302). Of IPv6, only a port of five digits is one: `2001:db8::7:4432` is an address, in
 * the network of the client.
 */
export function parseEntry(field: string, from: number, to: number): IpAddress | undefined {
  const entry = trimBlanks(field, from, to)
  if (entry.length > MAX_ENTRY_LENGTH) return undefined
  const [, bracketed, ipv4, ipv6] = entryForms.exec(entry) ?? []
  const address = parseAddress(bracketed ?? ipv4 ?? ipv6 ?? '')
  return address ?? parseAddress(ipv6?.match(beforePort)?.[0] ?? '')
}

const beforePort = /^(?:[\da-f:]+(?=:\d{5}$)|[\da-f:]+(?:\.\d+){3}(?=:\d{1,5}$))/i

/** CloudFront writes the port after each address, and no brackets around IPv6: `2001:db8::7:46532` is `2001:db8::7`. */
const headerWithPort = 'cloudfront-viewer-address'
const port = /^\d{1,5}$/

/** Reads a header that holds one address. @param name in lower case */
export function parseField(name: string, field: string): IpAddress | undefined {
  const colon = name === headerWithPort ? field.lastIndexOf(':') : -1
  const withoutPort =
    colon !== -1 && port.test(field.slice(colon + 1)) ? parseEntry(field, 0, colon) : undefined
  return withoutPort ?? parseEntry(field, 0, field.length)
}
