import type { ClientRequest } from '../message/client-request.ts'
import { methodOverrideFields } from './header-roles.ts'

/** Returns the headers of a local reply for the request's `Origin`: name, value, name, value… */
export type CorsHeaders = (origin: string | undefined) => readonly string[]

/**
 * The headers with which a browser lets scripts of other origins read a local reply. Scripts of named origins may send cookies; if every
 * origin is allowed, no script may (Fetch standard, section 3.3.5).
 *
 * @param origins as browsers write them, or `*` alone
 * @param exposed names of headers that scripts can read
 */
export function createCorsHeaders(origins: readonly string[], exposed: readonly string[]): CorsHeaders {
  const expose = ['access-control-expose-headers', exposed.join(', ')]
  if (origins.includes('*')) {
    const forAll = ['access-control-allow-origin', '*', ...expose]
    return () => forAll
  }
  // Sent to other origins too, so that caches do not give them a response that is meant for one origin.
  const forOthers = ['vary', 'Origin']
  const known = new Map(
    origins.map((origin) => [
      origin,
      [
        ...['access-control-allow-origin', origin, 'access-control-allow-credentials', 'true'],
        ...[...expose, ...forOthers],
      ],
    ]),
  )
  return (origin) => (origin === undefined ? undefined : known.get(origin)) ?? forOthers
}

/**
 * Whether the request is a CORS preflight (Fetch standard, section 3.3.3). A request that a backend may handle as another method is not
 * one. A request with a body or credentials is not one either: browsers never send them with a preflight, and a backend's handler for all
 * methods would serve the request like a POST.
 */
export function isPreflight({
  method,
  headers,
  hasContent,
}: Pick<ClientRequest, 'method' | 'headers' | 'hasContent'>): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined &&
    !hasContent &&
    !neverInPreflights.some((name) => headers[name] !== undefined)
  )
}

const neverInPreflights = [...methodOverrideFields, 'authorization', 'cookie']
