import { unescape } from 'node:querystring'
import type { IncomingHttpHeaders } from 'node:http'
import { methodOverrideFields } from '../../http/fields/header-roles.ts'
import { readAuthority } from '../authority.ts'
import { comparable } from './comparable-path.ts'
import { resolveDotSegments } from './dot-segments.ts'
import { controlCharacter, noOtherMatchPaths, plainMatchPaths, type MatchPaths } from './match-path.ts'
import { readRequestPath } from './recent-paths.ts'
import { mayHaveScript } from './script-paths.ts'

/** The target of a request: as sent except for dot segments, and in every way in which a backend may read it. */
export type Target = MatchPaths & {
  /** The path as forwarded: begins with `/`, without dot segments and the query; `*` for `OPTIONS *`. */
  readonly path: string
  /** The path and query for the backend's request line; only visible ASCII. */
  readonly forwardTarget: string
  /** The form that routes match: escapes decoded once, except `%2F`; letters folded; slashes merged. */
  readonly routePath: string
  /** The authority of an absolute-form target, which replaces `Host` (RFC 9112 section 3.2.2). */
  readonly authority: string | undefined
}

/** Further inputs for reading a target. */
export type TargetOptions = {
  /** The headers of the request. */
  readonly headers: IncomingHttpHeaders
  /** Whether the backend gets the target as sent, because another proxy forwards it. */
  readonly isForwardedAsSent?: boolean
  /** The default caches recent paths. */
  readonly readPath?: typeof readRequestPath
}

const beyondVisibleAscii = /[^\x21-\x7e]/
/** Matches paths that have several readings. Extensions are not included, because they depend on the method as well. */
const notPlain = /[^a-zA-Z0-9\-_~!$'()*,=:@./]|\/(?:[/.]|cgi-bin\/)|\.(?:\/|$)/i
const url = /^\/+[a-z][a-z0-9+.-]*:[/\\]{2}/i
const absoluteForm = /^https?:\/\/([^/?]*)/i
const escapedControl = /%(?:[01][0-9a-f]|7f)/i

const noHeaders: TargetOptions = { headers: {} }

/**
 * Reads a request target (RFC 9112 section 3.2). The target stays as sent, byte for byte, except that dot segments in its path are
 * resolved, and an absolute form is reduced to its path. The query also stays as sent, including the `?` of an empty query; the backend
 * judges malformed escapes in it.
 *
 * @param method as sent; `*` is only valid for OPTIONS, and CONNECT has no target that can be forwarded
 * @param raw the target as received, one character per byte
 * @returns the target, or the reason to answer 400, without any text of the request
 */
export function readTarget(method: string, raw: string, options = noHeaders): Target | string {
  if (method === 'CONNECT') return 'CONNECT is not supported'
  if (raw.startsWith('/')) {
    const question = raw.indexOf('?')
    const path = question === -1 ? raw : raw.slice(0, question)
    // Most targets are handled here: with one reading, or two because of a trailing slash or an extension.
    if (!notPlain.test(path) && (question === -1 || (isLegal(raw) && !isBatch(path, raw.slice(question))))) {
      const text = path.toLowerCase()
      const hasExtension = text.includes('.')
      if (!hasExtension && !text.endsWith('/')) return onlyReading(path, raw, text)
      if (!hasExtension || !mayHaveScript(text)) {
        const { matchPath, otherMatchPaths, shortened } = plainMatchPaths(
          text,
          hasExtension && hasFormat(method, options),
        )
        return {
          path,
          forwardTarget: raw,
          routePath: matchPath,
          matchPath,
          otherMatchPaths,
          shortened,
          authority: undefined,
        }
      }
    }
  }
  if (raw === '') return 'the target is empty'
  if (beyondVisibleAscii.test(raw)) return 'the target has a space, a control character or a non-ASCII byte'
  if (raw.includes('#')) return 'the target has a fragment'
  if (raw.startsWith('/')) return fromOriginForm(method, raw, undefined, options)
  if (raw === '*')
    return method === 'OPTIONS' ? wholeServer(undefined) : 'the target * is allowed for OPTIONS only'
  return fromAbsoluteForm(method, raw, options)
}

function onlyReading(path: string, forwardTarget: string, matchPath: string): Target {
  return {
    path,
    forwardTarget,
    routePath: matchPath,
    matchPath,
    otherMatchPaths: noOtherMatchPaths,
    shortened: undefined,
    authority: undefined,
  }
}

function isLegal(raw: string): boolean {
  return !beyondVisibleAscii.test(raw) && !raw.includes('#')
}

/** Whether a path may be a list of calls, as in `/trpc/user.get,auth.login?batch=1` (tRPC). */
function isBatch(path: string, query: string): boolean {
  return list.test(path) && unescape(query).toLowerCase().includes('batch')
}

const list = /,|%2c/i

/** Whether the extension may be a format. For GET and HEAD it names another file, unless the backend may apply another method. */
function hasFormat(method: string, { headers }: TargetOptions): boolean {
  if (method !== 'GET' && method !== 'HEAD') return true
  for (const name of methodOverrideFields) if (headers[name] !== undefined) return true
  return false
}

function fromAbsoluteForm(method: string, raw: string, options: TargetOptions): Target | string {
  const [prefix, sent] = absoluteForm.exec(raw) ?? []
  if (prefix === undefined || sent === undefined) return 'the target is neither a path nor an HTTP URL'
  const authority = readAuthority(sent)
  if (authority === undefined) return 'the target has an invalid authority'
  const rest = raw.slice(prefix.length)
  // Without a path, OPTIONS asks about the server as a whole (RFC 9112 section 3.2.4).
  if (rest === '' && method === 'OPTIONS') return wholeServer(authority)
  return fromOriginForm(method, rest.startsWith('/') ? rest : `/${rest}`, authority, options)
}

function fromOriginForm(
  method: string,
  raw: string,
  authority: string | undefined,
  options: TargetOptions,
): Target | string {
  const question = raw.indexOf('?')
  const sent = question === -1 ? raw : raw.slice(0, question)
  const query = question === -1 ? '' : raw.slice(question)
  if (escapedControl.test(sent)) return controlCharacter
  if (/%(?![0-9a-f]{2})/i.test(sent)) return 'the path has an invalid percent-encoding'
  const path = resolveDotSegments(sent)
  if (beginsWithUrl(path)) return 'the path begins with a URL'
  const unresolved = options.isForwardedAsSent && path !== sent ? sent : undefined
  const { readPath = readRequestPath } = options
  const use = { hasFormat: hasFormat(method, options), unresolved, isBatch: isBatch(path, query) }
  const matchPaths = readPath(path, use)
  if (typeof matchPaths === 'string') return matchPaths
  const routePath = withSlashesMerged(comparable(path))
  return { path, forwardTarget: path + query, routePath, ...matchPaths, authority }
}

/**
 * Whether a path begins with a URL, such as `/http://host/x`. A backend that removes the first slash, or looks for a scheme, reads it as
 * absolute form, with another host than the one that rules have seen. Further back, as in `/web/2020/https://host/x`, a URL is data.
 */
export function beginsWithUrl(path: string): boolean {
  if (url.test(path)) return true
  return path.startsWith('%', 1) && url.test(path.replace(/%(?=[2-7][0-9a-f])(?!2f|3a|5c)(..)/gi, decodeOne))
}

function decodeOne(_: string, hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16))
}

function withSlashesMerged(path: string): string {
  const merged = path.includes('//') ? path.replace(/\/\/+/g, '/') : path
  return merged.endsWith('/') && merged !== '/' ? merged.slice(0, -1) : merged
}

function wholeServer(authority: string | undefined): Target {
  return {
    path: '*',
    forwardTarget: '*',
    routePath: '*',
    matchPath: '*',
    otherMatchPaths: noOtherMatchPaths,
    shortened: undefined,
    authority,
  }
}
