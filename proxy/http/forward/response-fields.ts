import type { ClientRequest } from '../message/client-request.ts'
import type { ClientResponse } from '../message/client-response.ts'
import type { ResponseHead } from '../upstream/response/response-head.ts'

/**
 * The headers of a response from the backend as the client gets them: name, value, name, value…
 *
 * @param added headers of the gateway, in the same form
 */
export function responseFields(
  head: ResponseHead,
  request: ClientRequest,
  response: ClientResponse,
  added: readonly string[],
): string[] {
  // A 205 has no content either, whatever the backend says, and HTTP/2 clients check a declared length.
  const isWithoutLength = head.status === 204 || (head.status === 205 && request.httpVersionMajor > 1)
  let fields = isWithoutLength ? withoutLength(head.fields) : head.fields
  if (head.status === 426 && head.upgrade !== undefined && request.httpVersion === '1.1')
    fields = fields.concat(upgradeFields(head.upgrade, response.shouldKeepAlive))
  return added.length === 0 ? fields : fields.concat(added)
}

/**
 * Replaces the headers that caches read, so that no cache stores the response.
 *
 * @param fields name, value, name, value…; names in lower case
 */
export function uncached(fields: readonly string[]): string[] {
  const kept = fields.filter((_, i) => !isCacheField(fields[i - (i % 2)] ?? ''))
  return [...kept, 'cache-control', 'no-store']
}

function isCacheField(name: string): boolean {
  return name === 'cache-control' || name === 'expires' || isTargetedCacheField(name)
}

/**
 * Whether some caches read this header in place of `Cache-Control`. They do so with targeted fields (RFC 9213), whose names end in
 * `-Cache-Control` (`CDN-Cache-Control`, `Vercel-CDN-Cache-Control`, `X-LiteSpeed-Cache-Control`), and with headers of Akamai, Fastly and
 * nginx.
 *
 * @param name in lower case
 */
export function isTargetedCacheField(name: string): boolean {
  return name.endsWith('-cache-control') || otherTargeted.has(name)
}

const otherTargeted = new Set(['edge-control', 'surrogate-control', 'x-accel-expires'])

/**
 * The headers with the protocols that a 426 must name (RFC 9110 section 15.5.22). As the response sets `connection` itself, it must also
 * say whether the connection closes.
 */
function upgradeFields(protocols: string, persistent: boolean): string[] {
  return ['connection', persistent ? 'upgrade' : 'upgrade, close', 'upgrade', protocols]
}

/** The headers without `content-length`. @param fields name, value, name, value…; names in lower case */
export function withoutLength(fields: readonly string[]): string[] {
  return fields.filter((_, i) => fields[i - (i % 2)] !== 'content-length')
}
