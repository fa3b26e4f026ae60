import type { IncomingHttpHeaders } from 'node:http'
import { methodOverrideFields } from '../../http/fields/header-roles.ts'
import { readAuthority } from '../authority.ts'
import { comparable } from './comparable-path.ts'
import { resolveDotSegments } from './dot-segments.ts'
import { controlCharacter, noOtherMatchPaths, plainMatchPaths, type MatchPaths } from './match-path.ts'
import { readRequestPath } from './recent-paths.ts'
import { mayHaveScript } from './script-paths.ts'

/** The target of a request: as it was sent except for dot segments, and in all ways in which it may be read. */
export type Target = MatchPaths & {
  /** The path as it is forwarded: begins with `/`, without dot segments and the query; `*` for `OPTIONS *`. */
  readonly path: string
  /** Path and query for the backend's request line: visible ASCII only. */
  readonly forwardTarget: string
  /** The form that routes match: escapes decoded once, but for `%2F`, letters folded, slashes merged. */
  readonly routePath: string
  /** The authority of an absolute-form target: it replaces Host (RFC 9112 section 3.2.2). */
  readonly authority: string | undefined
}

/** Further inputs of a target. */
export type TargetOptions = {
  /** The headers of the request. */
  readonly headers: IncomingHttpHeaders
  /** Whether the backend gets the target as it was sent, since somebody else forwards it. */
  readonly isForwardedAsSent?: boolean
  /** Default: one that remembers recent paths. */
  readonly readPath?: typeof readRequestPath
}

const beyondVisibleAscii = /[^\x21-\x7e]/
/** Characters of paths that have several readings; extensions depend on the method as well. */
const notPlain = /[^a-zA-Z0-9\-_~!$'()*+,=:@./]|\/(?:[/.]|cgi-bin\/)|\.(?:\/|$)/i
const url = /^\/+[a-z][a-z0-9+.-]*:[/\\]{2}/i
const absoluteForm = /^https?:\/\/([^/?]*)/i
const escapedControl = /%(?:[01][0-9a-f]|7f)/i

const noHeaders: TargetOptions = { headers: {} }

/**
 * Reads a request target (RFC 9112 section 3.2). It stays as sent, byte for byte, except that dot segments in its path are resolved, and
 * an absolute form is reduced to its path. The query stays as sent too, with its `?` even when it is empty; a malformed escape in it is
 * for the backend to judge.
 *
 * @param method as sent: `*` is a target of OPTIONS only, and CONNECT has none that can be forwarded
 * @param raw the target as it came, one character a byte
 * @returns the target, or the reason to answer 400, in words that quote nothing of the request
 */
export function readTarget(method: string, raw: string, options = noHeaders): Target | string {
  if (method === 'CONNECT') return 'CONNECT is not supported'
  if (raw.startsWith('/')) {
    const question = raw.indexOf('?')
    const path = question === -1 ? raw : raw.slice(0, question)
    // Most targets end here: with one reading, or two by a slash or an extension at their end.
    if (!notPlain.test(path) && (question === -1 || isLegal(raw))) {
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

/** Whether an extension may be dropped. With GET and HEAD it names another file, unless the backend may take them for another method. */
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
  // RFC 9112 section 3.2.4: without a path, OPTIONS asks about the server as a whole.
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
  const matchPaths = readPath(path, { hasFormat: hasFormat(method, options), unresolved })
  if (typeof matchPaths === 'string') return matchPaths
  const routePath = withSlashesMerged(comparable(path))
  return { path, forwardTarget: path + query, routePath, ...matchPaths, authority }
}

/**
 * Whether a path is such as `/http://host/x`, which a backend that takes its first slash away, or looks for a scheme, reads as
 * absolute form: another host than rules have seen. Further on, as in `/web/2020/https://host/x`, it is data.
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
