import { unescape } from 'node:querystring'

/**
 * What rules match a path on. Segments are joined with `/`; letters are folded to lower case and escapes are decoded
 * (not `%25`), so this is text to compare and look up, never to forward or to decode again.
 */
export type MatchPaths = {
  /** The path as the most lenient backend reads it. No empty and no dot segments; no slash at the end but of `/`. */
  readonly matchPath: string
  /**
   * What other backends make of the same path, where that differs. Mostly the shared empty list. `/users//` is `/users/`
   * with an empty name at its end, which some routers take for `/users/:id`.
   */
  readonly otherMatchPaths: readonly string[]
}

export const noOtherMatchPaths: readonly string[] = Object.freeze([])

const ambiguous = /[;?#]|%2f|%3b|\/[\0- \x7f]|[\0- \x7f.](?:\/|$)/
const delimiter = /[;?#]|%3b/
const slash = /\/|%2f/
const parameter = /;[^/]*/g
const parameterOrEscaped = /(?:;|%3b)[^/]*/g
const fromParameter = /;[^]*/
const fromParameterOrEscaped = /(?:;|%3b)[^]*/
/** Bounds the work on a path of thousands of segments and many readings: 8 KB of the worst took 2 ms. */
const mostAmbiguousSegments = 128

const rootWithEmptyName: readonly string[] = Object.freeze(['//'])

const climbs = 'the path climbs above the root'

/**
 * Reads a canonical path in every way in which a backend may read it, so that no spelling of a limited path slips by.
 * Backends differ in six things, and each combination is a reading:
 *
 * - `;parameters` are dropped, before decoding (Tomcat, Jetty) or after it, so that `%3B` begins them and `%2F` ends them
 *   too; or those of the last segment only (Python's `urlparse`); or the path ends with the first of them (find-my-way of
 *   Fastify 4 and Restify, and Puma's parser); or they are text (Express);
 * - `%3F` and `%23` are text, or end the path, where a server writes the decoded path into a new request (nginx's
 *   `proxy_pass http://app$uri`; mod_rewrite before CVE-2024-38474) or decodes it before it looks for the query;
 * - `%2F` parts segments (WSGI, nginx) or is a part of one (Express, Spring's PathPattern);
 * - dot segments that appear only now (`..;x`, `..%2F`) are resolved, after merging slashes (Tomcat, nginx) or before
 *   (RFC 3986), or are text (WSGI, Express);
 * - white space and control characters around a segment and dots at its end are ignored (`$` of Python's and Ruby's
 *   expressions matches before a line end; Windows opens `login.` as `login`) or not;
 * - a slash at the end is ignored, or an empty name follows it that a `:name` takes (find-my-way of Fastify and Restify).
 *
 * Letter case is ignored in every reading, as Unicode and Python's `re.IGNORECASE` fold it (`ſ`, `ı`, `K`). What only a
 * backend's own routing knows is another path: an extension (`/login.json`), a second decoding (`%252F`).
 *
 * @param path canonical, see `canonicalPath`
 * @returns the readings, or what is wrong with the path: one that climbs above the root in some reading would leave the
 * upstream's prefix there, and one of very many segments would cost too much to read in every way
 */
export function readMatchPaths(path: string): MatchPaths | string {
  const text = comparable(path)
  if (!ambiguous.test(text)) {
    return plainMatchPaths(text)
  }
  if (text.split(slash).length > mostAmbiguousSegments) return 'the path has too many segments'
  const readings = new Set<string>()
  if (!addReadings(readings, text)) return climbs
  // Behind a server that has decoded the path and resolved its dot segments, another one does the same and the rest.
  const segments = text.slice(1).split(slash)
  if (delimiter.test(text) && (segments.includes('..') || segments.includes('.'))) {
    for (const resolved of [resolveDots(segments.filter((name) => name !== '')), resolveDots(segments)])
      if (resolved && !addReadings(readings, join(resolved))) return climbs
  }
  const [matchPath = '/', ...otherMatchPaths] = readings
  return { matchPath, otherMatchPaths }
}

/** Adds how one server may read a path. Returns false where the path climbs above the root in one of its readings. */
function addReadings(readings: Set<string>, text: string): boolean {
  const queryStart = text.search(/[?#]/)
  const spellings = new Set(spellingsOf(text))
  if (queryStart !== -1)
    for (const spelling of spellingsOf(text.slice(0, queryStart))) spellings.add(spelling)
  for (const spelling of spellings) {
    for (const separator of spelling.includes('%2f') ? [slash, '/'] : ['/']) {
      const segments = spelling.slice(1).split(separator)
      const names = segments.filter((segment) => segment !== '')
      const endsInSlash = /^\.{0,2}$/.test(segments.at(-1) ?? '')
      for (const reading of [resolveDots(names), resolveDots(segments), names]) {
        if (!reading) return false
        readings.add(join(reading.map(trim))).add(join(reading))
        if (endsInSlash) readings.add(withEmptyName(join(reading)))
      }
    }
  }
  return true
}

/** What each reading of `;` leaves of a path. */
function spellingsOf(text: string): string[] {
  if (!text.includes(';') && !text.includes('%3b'))
    return text.includes('%2f') ? [text.replaceAll('%2f', '/'), text] : [text]
  const unescaped = text.replaceAll('%2f', '/')
  return [
    unescaped.replace(parameterOrEscaped, ''),
    unescaped.replace(parameter, ''),
    text.replace(parameterOrEscaped, ''),
    text.replace(parameter, ''),
    text,
    text.replace(fromParameterOrEscaped, ''),
    text.replace(fromParameter, ''),
    withoutLastParameters(text, fromParameter),
    withoutLastParameters(unescaped, fromParameterOrEscaped),
  ]
}

/** Not one expression for the whole: it would begin anew at each of thousands of `;`. */
function withoutLastParameters(text: string, parameters: RegExp): string {
  const lastSegment = text.lastIndexOf('/') + 1
  return text.slice(0, lastSegment) + text.slice(lastSegment).replace(parameters, '')
}

/** Of a path in which only a slash at the end can be read in two ways. Folded already. */
export function plainMatchPaths(path: string): MatchPaths {
  if (!path.endsWith('/')) return { matchPath: path, otherMatchPaths: noOtherMatchPaths }
  if (path === '/') return { matchPath: path, otherMatchPaths: rootWithEmptyName }
  const matchPath = path.slice(0, -1)
  return { matchPath, otherMatchPaths: [withEmptyName(matchPath)] }
}

/** @param path without a slash at the end, but the only one */
function withEmptyName(path: string): string {
  return path === '/' ? '//' : `${path}//`
}

/** @returns the path, where an empty name has been put at its end, and else undefined */
export function withoutEmptyName(path: string): string | undefined {
  if (!path.endsWith('//')) return undefined
  return path === '//' ? '/' : path.slice(0, -2)
}

/** Decodes and folds. `%25`, `%2F` and `%3B` stay escapes: what they mean depends on the backend. */
function comparable(path: string): string {
  const decoded = unescape(path.replace(/%(?=25|2F|3B)/g, '%25'))
  // Upper case first: it is what turns `ſ` and `ı` into the letters that they are taken for.
  return decoded.toUpperCase().toLowerCase().replaceAll('i\u0307', 'i')
}

function trim(name: string): string {
  let start = 0
  let end = name.length
  while (start < end && isBlank(name.charCodeAt(start))) start += 1
  while (end > start && isBlank(name.charCodeAt(end - 1))) end -= 1
  if (start === end) return ''
  while (end > start && (isBlank(name.charCodeAt(end - 1)) || name[end - 1] === '.')) end -= 1
  // No backend takes `.. ` for `..`.
  return start === end ? name : name.slice(start, end)
}

function isBlank(code: number): boolean {
  return code <= 0x20 || code === 0x7f
}

/** @returns undefined where `..` climbs above the root */
function resolveDots(segments: readonly string[]): string[] | undefined {
  const kept: string[] = []
  for (const segment of segments) {
    if (segment === '..') {
      if (kept.pop() === undefined) return undefined
    } else if (segment !== '.') kept.push(segment)
  }
  return kept
}

function join(segments: readonly string[]): string {
  return `/${segments.filter((segment) => segment !== '').join('/')}`
}
