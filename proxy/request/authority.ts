import { isIPv6 } from 'node:net'
import { Remembered } from '../http/message/remembered.ts'

const MAX_HOSTS = 256
/** A name has at most 253 characters (RFC 1035 section 2.3.4); a dot and a port may follow. */
const MAX_HOST_LENGTH = 260

/** Creates a bounded cache of the hosts in recent requests, which clients cannot fill with long texts. */
export function rememberHosts(): Remembered<string> {
  return new Remembered(MAX_HOSTS, MAX_HOST_LENGTH)
}

const authoritySyntax = /^(?:[a-z0-9._-]{1,255}|\[([0-9a-f:.]{2,45})\])(?::(\d{0,5}))?$/i

/**
 * Reads a host and its port, from `Host` or from an absolute-form target (RFC 9110 sections 4.2 and 7.2).
 *
 * Stricter than RFC 3986 section 3.2.2, which allows escapes and punctuation that no name in use has. Of the software behind the gateway,
 * some might read `a,b` or `a'b` as a host, and some as something else. Port 0, at which nothing can listen, is rejected too: Jetty closes
 * an HTTP/2 connection for it, with the requests of other clients.
 *
 * @returns the authority without an empty port, which means the same as no port; undefined if the text is not an authority
 */
export function readAuthority(text: string): string | undefined {
  const [whole, address, port] = authoritySyntax.exec(text) ?? []
  if (whole === undefined || (address !== undefined && !isIPv6(address))) return undefined
  if (port && !(Number(port) > 0 && Number(port) <= 65_535)) return undefined
  return port === '' ? whole.slice(0, -1) : whole
}
