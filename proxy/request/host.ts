import { readAuthority } from './authority.ts'
import type { ClientRequest } from '../http/messages.ts'

const maxRemembered = 256
const remembered = new Map<string, string>()

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
    if (sent !== undefined && (sent !== value || request.httpVersionMajor === 1)) return undefined
    sent = value
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

function readHostValue(value: string): string | undefined {
  const known = remembered.get(value)
  if (known !== undefined) return known
  const host = readAuthority(value)
  if (host !== undefined && remembered.size < maxRemembered) remembered.set(value, host)
  return host
}
