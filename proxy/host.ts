import type { ClientRequest } from './reply.ts'

// A name or IPv4 address, or an IPv6 address in brackets; a port (RFC 9110 section 7.2, RFC 3986 section 3.2).
const hostSyntax = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+,;=%-]+)(?::[0-9]{1,5})?$/
const maxRemembered = 256
const remembered = new Set<string>()

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
  let host: string | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    if (!isHostField(name)) continue
    const value = rawHeaders[i + 1]
    if (host !== undefined && (host !== value || request.httpVersionMajor === 1)) return undefined
    host = value
  }
  if (host !== undefined && !isHost(host)) return undefined
  if (host === undefined && (request.httpVersionMajor > 1 || request.httpVersionMinor > 0)) return undefined
  return authority ?? host ?? fallback
}

function isHostField(name: string): boolean {
  if (name.length === 4) return name === 'Host' || name === 'host' || name.toLowerCase() === 'host'
  return name === ':authority'
}

function isHost(value: string): boolean {
  if (remembered.has(value)) return true
  if (!hostSyntax.test(value)) return false
  if (remembered.size < maxRemembered && value.length <= 255) remembered.add(value)
  return true
}
