/**
 * How backends read the path of a request. Written plainly and independently of the gateway's code. Each reader returns the path that the
 * backend's routes match, or undefined if the backend refuses the request. A slash that is data within a segment stays `%2f`.
 */
export type PathReader = (path: string) => string | undefined

export const pathReaders: Readonly<Record<string, PathReader>> = {
  /** Express, Fastify, Koa: routes see the raw segments, decoded one by one. */
  express: (path) => tidy(path.split('/').map(decodeSegment)),
  /** Tomcat with encoded slashes decoded: drops parameters, decodes, merges slashes, resolves dot segments. */
  tomcat: (path) => resolveMerged(decode(dropParameters(path))),
  /** Tomcat with encoded slashes passed through. */
  tomcatPassThrough: (path) => resolveMerged(dropParameters(path).split('/').map(decodeSegment).join('/')),
  /** A server that decodes before it looks for parameters. */
  decodeFirst: (path) => resolveMerged(dropParameters(decode(path))),
  /** Tomcat behind a proxy that decodes slashes and nothing else, as Envoy can. */
  tomcatBehindEnvoy: (path) => resolveMerged(decode(dropParameters(path.replace(/%2f/gi, '/')))),
  /** Decodes segments one by one, and looks for parameters afterwards. */
  decodeSegmentsFirst: (path) => {
    return tidy(path.split('/').map((segment) => dropParameters(decodeSegment(segment))))
  },
  /** Spring's PathPattern: drops parameters in each segment, decodes segments one by one, resolves nothing. */
  spring: (path) => tidy(dropParameters(path).split('/').map(decodeSegment)),
  /** nginx: decodes, merges slashes, resolves dot segments; knows no parameters. */
  nginx: (path) => resolveMerged(decode(path)),
  /** Decodes and resolves by RFC 3986, where an empty segment counts. */
  rfc: (path) => resolveByRfc(decode(path)),
  /** The reader `rfc`, behind a server that drops parameters. */
  rfcWithoutParameters: (path) => resolveByRfc(decode(dropParameters(path))),
  /** find-my-way up to version 7, of Fastify 4 and Restify: the path ends at `;`, before decoding. */
  findMyWay: (path) => tidy(endAt(path, /[;?#]/).split('/').map(decodeSegment)),
  /** Puma: the path ends at `;`, and the application decodes it. */
  puma: (path) => tidy(decode(endAt(path, /;/)).split('/')),
  /** Python's `urlparse`: only the last segment has parameters. */
  urlparse: (path) => tidy(decode(path.replace(/;[^/]*$/, '')).split('/')),
  /** Python's `urlparse` after decoding, so that an escape may begin the query too. */
  urlparseDecoded: (path) =>
    tidy(
      endAt(decode(path), /[?#]/)
        .replace(/;[^/]*$/, '')
        .split('/'),
    ),
  /** nginx with `proxy_pass http://app$uri`: the decoded path is the target of a new request. */
  nginxUri: (path) => {
    const target = resolveMerged(decode(path))
    return target && tidy(endAt(target, /[?#]/).split('/'))
  },
  /** nginx with `$uri`, in front of find-my-way. */
  nginxUriBeforeFindMyWay: (path) => {
    const target = resolveMerged(decode(path))
    return target && tidy(endAt(target, /[;?#]/).split('/'))
  },
  /** nginx with `$uri`, in front of Tomcat. */
  nginxUriBeforeTomcat: (path) => {
    const target = resolveMerged(decode(path))
    return target && resolveMerged(dropParameters(endAt(target, /[?#]/)))
  },
  /** WSGI: only decodes PATH_INFO. */
  wsgi: (path) => tidy(decode(path).split('/')),
  /** Decodes twice. */
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
  /** Bottle 0.13: decodes PATH_INFO, and drops the bytes that are not UTF-8. */
  bottle: (path) => tidy(decode(path).replaceAll('\ufffd', '').split('/')),
  /**
   * The same front controller with `filter_var($url, FILTER_SANITIZE_URL)`. Only for names of which some character is left, and not only
   * dots: those were resolved before, and no route has a name of dots.
   */
  sanitized: (path) => {
    const target = resolveMerged(decode(path))
    const read = target && decode(endAt(target, /&/).replaceAll('+', ' '))
    if (!read || read.split('/').some((name) => /^[^!-~]+$/.test(name))) return undefined
    const names = read.replace(/[^!-~]/g, '').split('/')
    return names.some((name) => /^\.+$/.test(name)) ? undefined : tidy(names)
  },
  /** IIS: decodes, treats a backslash as a slash, resolves dot segments. */
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
  /** Image proxies, and libraries that resolve a target against its base: read the URL after the first slash. */
  urlInside: (path) =>
    tidy(
      decode(path)
        .replace(/^\/+[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '')
        .split('/'),
    ),
  /** PHP on Apache or on FPM: the part of the path after a script is its PATH_INFO. */
  pathInfo: (path) => {
    return resolveMerged(decode(path))?.replace(/(\.(?:php|cgi|aspx))\/.*$/i, '$1')
  },
  /** A front controller, whether the path names it or not. */
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
