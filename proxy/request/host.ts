import type { ClientRequest } from '../http/message/messages.ts'
import { ownCopy } from '../http/message/detach-buffer.ts'
import { Remembered } from '../http/message/remembered.ts'
import { readAuthority } from './authority.ts'
import { formatAddress, parseAddress } from './addresses/ip-address.ts'

const MAX_HOSTS = 256
/** A name has 253 characters at most (RFC 1035 section 2.3.4), behind it a dot and a port. */
const MAX_HOST_LENGTH = 260
const remembered = new Remembered<string>(MAX_HOSTS, MAX_HOST_LENGTH)
const comparable = new Remembered<string>(MAX_HOSTS, MAX_HOST_LENGTH)

/**
 * The one host that a request names, as it is forwarded, or undefined where the request must be refused (RFC 9112
 * section 3.2): none in HTTP/1.1, several, or one that is no host. What an absolute-form target names takes the place of
 * `Host` (section 3.2.2).
 *
 * @param authority of an absolute-form target
 * @param fallback for HTTP/1.0, which need not name one
 */
export function readHost(
  request: ClientRequest,
  authority: string | undefined,
  fallback: string,
): string | undefined {
  const { rawHeaders } = request
  let sent: string | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    if (!isHostField(name)) continue
    const value = rawHeaders[i + 1]
    if (sent !== undefined && (request.httpVersionMajor === 1 || !isSameAuthority(sent, value ?? '')))
      return undefined
    sent ??= value
  }
  if (sent === undefined) {
    return request.httpVersion === '1.0' ? (authority ?? fallback) : undefined
  }
  const host = readHostValue(sent)
  return host === undefined ? undefined : (authority ?? host)
}

function isHostField(name: string): boolean {
  if (name.length === 4) return name === 'Host' || name === 'host' || name.toLowerCase() === 'host'
  return name === ':authority'
}

/** Whether `:authority` and `Host` name the same (RFC 9113 section 8.3.1): letter case and the port of the scheme make no difference. */
function isSameAuthority(one: string, other: string): boolean {
  return one === other || withoutUsualPort(one.toLowerCase()) === withoutUsualPort(other.toLowerCase())
}

/** Without the port of `http` or `https`: over a connection without TLS a request may be for either, if a proxy has taken TLS off. */
function withoutUsualPort(authority: string): string {
  return authority.replace(/:(?:80|443)?$/, '')
}

function readHostValue(value: string): string | undefined {
  const known = remembered.find(value)
  if (known !== undefined) return known
  const copy = ownCopy(value)
  const host = readAuthority(copy)
  if (host !== undefined) remembered.add(copy, host)
  return host
}

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
  // A name of dots alone is no name, but it is the one that was sent.
  const host = address ? formatAddress(address) : (bracketed ?? name.replace(/(?<=[^.])\.+$/, ''))
  comparable.add(ownCopy(authority), ownCopy(host))
  return host
}
