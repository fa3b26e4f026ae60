/**
 * How backends read the path that they are sent, written slowly and apart from the gateway's own code. Each gives the
 * path that its routes are matched with, or undefined where it refuses. What is data in a segment although it is a slash
 * stays `%2f`.
 */
export type PathReader = (path: string) => string | undefined

export const pathReaders: Readonly<Record<string, PathReader>> = {
  /** Express, Fastify, Koa: routes see the raw segments, decoded one by one. */
  express: (path) => tidy(path.split('/').map(decodeSegment)),
  /** Tomcat with encoded slashes decoded: parameters away, decode, merge, resolve. */
  tomcat: (path) => resolveMerged(decode(dropParameters(path))),
  /** Tomcat with encoded slashes passed through. */
  tomcatPassThrough: (path) => resolveMerged(dropParameters(path).split('/').map(decodeSegment).join('/')),
  /** A server that decodes before it looks for parameters. */
  decodeFirst: (path) => resolveMerged(dropParameters(decode(path))),
  /** Tomcat behind a proxy that decodes slashes and nothing else, as Envoy can. */
  tomcatBehindEnvoy: (path) => resolveMerged(decode(dropParameters(path.replace(/%2f/gi, '/')))),
  /** Segments decoded one by one, and then looked at for parameters. */
  decodeSegmentsFirst: (path) => {
    return tidy(path.split('/').map((segment) => dropParameters(decodeSegment(segment))))
  },
  /** Spring's PathPattern: parameters away in each segment, decoded one by one, nothing resolved. */
  spring: (path) => tidy(dropParameters(path).split('/').map(decodeSegment)),
  /** nginx: decode, merge, resolve; no parameters. */
  nginx: (path) => resolveMerged(decode(path)),
  /** Decodes and resolves by RFC 3986, where an empty segment counts. */
  rfc: (path) => resolveByRfc(decode(path)),
  /** The same behind a server that drops parameters. */
  rfcWithoutParameters: (path) => resolveByRfc(decode(dropParameters(path))),
  /** WSGI: PATH_INFO is decoded and nothing else. */
  wsgi: (path) => tidy(decode(path).split('/')),
  /** nginx before Python, whose `$` matches before a line end. */
  nginxBeforePython: (path) => resolveMerged(decode(path))?.replace(/\n$/, ''),
}

function decode(path: string): string {
  return Buffer.from(
    path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString('utf8')
}

function decodeSegment(segment: string): string {
  return decode(segment.replace(/%2f/gi, '%252f'))
}

function dropParameters(path: string): string {
  return path
    .split('/')
    .map((segment) => segment.split(';')[0] ?? '')
    .join('/')
}

function tidy(segments: readonly string[]): string {
  return `/${segments.filter((segment) => segment !== '').join('/')}`
}

function resolveMerged(path: string): string | undefined {
  let merged = path
  while (merged.includes('//')) merged = merged.replace('//', '/')
  return resolveByRfc(merged)
}

function resolveByRfc(path: string): string | undefined {
  const kept: string[] = []
  for (const segment of path.split('/').slice(1)) {
    if (segment === '.') continue
    if (segment !== '..') kept.push(segment)
    else if (kept.pop() === undefined) return undefined
  }
  return tidy(kept)
}
