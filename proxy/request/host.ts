import { ownCopy } from '../http/message/detach-buffer.ts'
import { formatAddress, parseAddress } from './addresses/ip-address.ts'
import { rememberHosts } from './authority.ts'

const comparable = rememberHosts()

/**
 * Returns a host in the form in which hosts are compared: in lower case, without the port and a trailing dot; addresses in their canonical
 * text, without brackets. Names are compared as sent, which is Punycode for international names.
 *
 * @param authority a result of `readHost`
 */
export function comparableHost(authority: string): string {
  const known = comparable.find(authority)
  if (known !== undefined) return known
  const [, bracketed, name = ''] = /^(?:\[(.*)\]|([^:]*))(?::\d*)?$/.exec(authority.toLowerCase()) ?? []
  const address = parseAddress(bracketed ?? name)
  // Dots alone are not a valid name, but are kept as sent.
  const host = address ? formatAddress(address) : (bracketed ?? name.replace(/(?<=[^.])\.+$/, ''))
  comparable.add(ownCopy(authority), ownCopy(host))
  return host
}
