import { readAuthority } from './authority.ts'
import { canonicalPath } from './canonical-path.ts'
import { noOtherMatchPaths, plainMatchPaths, readMatchPaths, type MatchPaths } from './match-path.ts'

/** What a request asks for: one spelling, which is both matched and forwarded. */
export type Target = MatchPaths & {
  /** Canonical, begins with `/`, without the query; `*` for `OPTIONS *`. */
  readonly path: string
  /** Path and query for the backend's request line: visible ASCII only. */
  readonly forwardTarget: string
  /** The authority of an absolute-form target: it replaces Host (RFC 9112 section 3.2.2). */
  readonly authority: string | undefined
}

const beyondVisibleAscii = /[^\x21-\x7e]/
const notCanonicalAsIs = /[^a-zA-Z0-9\-_~!$&'()*+,=:@./]|\/[/.]|\.(?:\/|$)/
/**
 * A path such as `/http://host/x`, which a backend that takes its first slash away, or looks for a scheme, reads as absolute
 * form: another host, and another path than rules have seen. Further on, as in `/web/2020/https://host/x`, it is data.
 */
export const beginsWithScheme = /^\/[a-z][a-z0-9+.-]*:(?:\/|$)/i
const absoluteForm = /^https?:\/\/([^/?]*)/i

/**
 * Reads a request target (RFC 9112 section 3.2) and makes it canonical. The query stays as sent, with its `?` even when
 * it is empty; a broken escape in it is the backend's to judge.
 *
 * @param method as sent: `*` is a target of OPTIONS only, and CONNECT has none that can be forwarded
 * @param raw the target as it came, one character a byte
 * @returns the target, or, to be answered with 400, what is wrong with it, in words without anything of the request
 */
export function canonicalizeTarget(method: string, raw: string): Target | string {
  if (method === 'CONNECT') return 'CONNECT is not supported'
  if (raw.startsWith('/')) {
    const question = raw.indexOf('?')
    const path = question === -1 ? raw : raw.slice(0, question)
    // Most targets end here: canonical as they came, and with one reading.
    if (!notCanonicalAsIs.test(path) && (question === -1 || isLegal(raw))) {
      const { matchPath, otherMatchPaths } = plainMatchPaths(path.toLowerCase())
      return { path, forwardTarget: raw, matchPath, otherMatchPaths, authority: undefined }
    }
  }
  if (raw === '') return 'the target is empty'
  if (beyondVisibleAscii.test(raw)) return 'the target has a space, a control character or a non-ASCII byte'
  if (raw.includes('#')) return 'the target has a fragment'
  if (raw.startsWith('/')) return fromOriginForm(raw, undefined)
  if (raw === '*')
    return method === 'OPTIONS' ? wholeServer(undefined) : 'the target * is allowed for OPTIONS only'
  return fromAbsoluteForm(method, raw)
}

function isLegal(raw: string): boolean {
  return !beyondVisibleAscii.test(raw) && !raw.includes('#')
}

function fromAbsoluteForm(method: string, raw: string): Target | string {
  const [prefix, sent] = absoluteForm.exec(raw) ?? []
  if (prefix === undefined || sent === undefined) return 'the target is neither a path nor an HTTP URL'
  const authority = readAuthority(sent)
  if (authority === undefined) return 'the target has an invalid authority'
  const rest = raw.slice(prefix.length)
  // RFC 9112 section 3.2.4: without a path, OPTIONS asks about the server as a whole.
  if (rest === '' && method === 'OPTIONS') return wholeServer(authority)
  return fromOriginForm(rest.startsWith('/') ? rest : `/${rest}`, authority)
}

function fromOriginForm(raw: string, authority: string | undefined): Target | string {
  const question = raw.indexOf('?')
  const sent = question === -1 ? raw : raw.slice(0, question)
  const query = question === -1 ? '' : raw.slice(question)
  if (/\\|%5c/i.test(sent)) return 'the path has a backslash'
  if (sent.includes('%00')) return 'the path has a NUL'
  if (/%(?![0-9a-f]{2})/i.test(sent)) return 'the path has an invalid percent-encoding'
  const path = canonicalPath(sent)
  if (sent.includes('://') && beginsWithScheme.test(path)) return 'the path begins with a URL'
  const matchPaths = readMatchPaths(path)
  if (typeof matchPaths === 'string') return matchPaths
  return { path, forwardTarget: path + query, ...matchPaths, authority }
}

function wholeServer(authority: string | undefined): Target {
  return { path: '*', forwardTarget: '*', matchPath: '*', otherMatchPaths: noOtherMatchPaths, authority }
}
