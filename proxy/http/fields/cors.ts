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
