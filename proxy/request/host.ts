import { ownCopy } from '../http/message/detach-buffer.ts'
import { formatAddress, parseAddress } from './addresses/ip-address.ts'
import { rememberHosts } from './authority.ts'

const comparable = rememberHosts()

/**
 * A host in the one spelling that hosts are compared in: lower case, without the port, without a dot at the end, an
 * address in its canonical text and without brackets. Names are compared as they are sent, which for international ones
 * is Punycode.
 *
 * @param authority as `readHost` returns it
 */
export function comparableHost(authority: string): string {
  const known = comparable.find(authority)
  if (known !== undefined) return known
  const [, bracketed, name = ''] = /^(?:\[(.*)\]|([^:]*))(?::\d*)?$/.exec(authority.toLowerCase()) ?? []
  const address = parseAddress(bracketed ?? name)
  // A name of dots alone is not a name, but it is the one that was sent.
  const host = address ? formatAddress(address) : (bracketed ?? name.replace(/(?<=[^.])\.+$/, ''))
  comparable.add(ownCopy(authority), ownCopy(host))
  return host
}
