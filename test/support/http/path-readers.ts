/**
 * How backends read the path that they are sent, written slowly and apart from the gateway's own code. Each gives the
 * path that its routes are matched with, or undefined where it refuses. Data in a segment that is a slash
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
  /** find-my-way up to version 7, of Fastify 4 and Restify: the path ends at `;`, before decoding. */
  findMyWay: (path) => tidy(endAt(path, /[;?#]/).split('/').map(decodeSegment)),
  /** Puma: the path ends at `;`, and the application decodes it. */
  puma: (path) => tidy(decode(endAt(path, /;/)).split('/')),
  /** Python's `urlparse`: only the last segment has parameters. */
  urlparse: (path) => tidy(decode(path.replace(/;[^/]*$/, '')).split('/')),
  /** The same after decoding, where an escape may begin the query too. */
  urlparseDecoded: (path) =>
    tidy(
      endAt(decode(path), /[?#]/)
        .replace(/;[^/]*$/, '')
        .split('/'),
    ),
  /** nginx with `proxy_pass http://app$uri`: what it has decoded is the target of a new request. */
  nginxUri: (path) => {
    const target = resolveMerged(decode(path))
    return target && tidy(endAt(target, /[?#]/).split('/'))
  },
  /** The same before find-my-way. */
  nginxUriBeforeFindMyWay: (path) => {
    const target = resolveMerged(decode(path))
    return target && tidy(endAt(target, /[;?#]/).split('/'))
  },
  /** The same before Tomcat. */
  nginxUriBeforeTomcat: (path) => {
    const target = resolveMerged(decode(path))
    return target && resolveMerged(dropParameters(endAt(target, /[?#]/)))
  },
  /** WSGI: PATH_INFO is decoded and nothing else. */
  wsgi: (path) => tidy(decode(path).split('/')),
  /** Decodes, and decodes what it has decoded. */
  twice: (path) => tidy(decode(decode(path)).split('/')),
  twiceResolved: (path) => resolveMerged(decode(decode(path))),
  /** nginx with `proxy_pass http://app$uri`, twice. */
  nginxUriTwice: (path) => {
    const first = resolveMerged(decode(path))
    return first && resolveMerged(decode(endAt(first, /[?#]/)))
  },
  /** Apache with `RewriteRule ^(.*)$ index.php?url=$1`, and PHP, which decodes parameters. */
  rewritten: (path) => {
    const target = resolveMerged(decode(path))
    return target && tidy(decode(endAt(target, /&/)).split('/'))
  },
  /** IIS: decodes, takes a backslash for a slash, resolves. */
  iis: (path) => resolveMerged(decode(path).replaceAll('\\', '/')),
  iisTwice: (path) => resolveMerged(decode(decode(path)).replaceAll('\\', '/')),
  /** Tomcat with `ALLOW_BACKSLASH`. */
  tomcatBackslash: (path) => resolveMerged(decode(dropParameters(path)).replaceAll('\\', '/')),
  /** `new URL(request.url, base)` of Node and Deno. */
  whatwg: (path) => {
    return URL.canParse(path, 'http://a')
      ? tidy(new URL(path, 'http://a').pathname.split('/').map(decodeSegment))
      : undefined
  },
  /** Python's `urlsplit` of the target. */
  urlsplit: (path) => tidy(decode(path.replace(/^\/\/[^/?#]*/, '')).split('/')),
  /** The URL after the first slash: image proxies, and libraries that resolve a target against its base. */
  urlInside: (path) =>
    tidy(
      decode(path)
        .replace(/^\/+[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '')
        .split('/'),
    ),
  /** PHP on Apache or on FPM: the text after a script is its PATH_INFO. */
  pathInfo: (path) => {
    return resolveMerged(decode(path))?.replace(/(\.(?:php|cgi|aspx))\/.*$/i, '$1')
  },
  /** A front controller, named or not. */
  frontController: (path) => {
    const target = resolveMerged(decode(path))
    return target && tidy(target.replace(/\/index\.php(?=\/|$)/i, '').split('/'))
  },
}

function decode(path: string): string {
  return path.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) =>
    Buffer.from(escapes.replaceAll('%', ''), 'hex').toString('utf8'),
  )
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

function endAt(path: string, delimiter: RegExp): string {
  const at = path.search(delimiter)
  return at === -1 ? path : path.slice(0, at)
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
