import { isIPv6 } from 'node:net'
import { Remembered } from '../http/message/remembered.ts'

const MAX_HOSTS = 256
/** A name has 253 characters at most (RFC 1035 section 2.3.4), after it a dot and a port. */
const MAX_HOST_LENGTH = 260

/** Makes a bounded cache of the hosts that recent requests named, which clients cannot fill with long texts. */
export function rememberHosts(): Remembered<string> {
  return new Remembered(MAX_HOSTS, MAX_HOST_LENGTH)
}

const authoritySyntax = /^(?:[a-z0-9._-]{1,255}|\[([0-9a-f:.]{2,45})\])(?::(\d{0,5}))?$/i

/**
 * Reads a host and its port, from `Host` or from an absolute target (RFC 9110 sections 4.2 and 7.2).
 *
 * Narrower than RFC 3986 section 3.2.2, which would allow escapes and punctuation that no name in use has: software that reads
 * `a,b` or `a'b` as a host somewhere behind the gateway reads it as something else next to it.
 *
 * @returns the authority without an empty port, which means the same as no port; undefined if the text is not an authority
 */
export function readAuthority(text: string): string | undefined {
  const [whole, address, port] = authoritySyntax.exec(text) ?? []
  if (whole === undefined || (address !== undefined && !isIPv6(address)) || Number(port ?? 0) > 65_535) {
    return undefined
  }
  return port === '' ? whole.slice(0, -1) : whole
}
