import { isIP } from 'node:net'
import { showValue } from './problems.ts'
import { text } from './kinds.ts'
import type { Kind } from './table.ts'

/** An address to listen on, or the name of one. IPv6 goes without brackets. */
export const listenHost = text(
  'an IP address or a host name, without a port and without brackets',
  (host) => isIP(host) > 0 || /^[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?$/.test(host),
)

const writtenBaseUrl = text(
  'http://HOST[:PORT][/PREFIX] or https://HOST[:PORT][/PREFIX], without user, query and fragment',
  isBaseUrl,
)

/** A base URL, http or https, whose path, if any, is a prefix. Read without a final slash. */
export const baseUrl: Kind<string> = {
  ...writtenBaseUrl,
  schema: writtenBaseUrl.schema.transform((url) => url.replace(/\/+$/, '')),
  show: showUrl,
}

const writtenUpstreamUrl = text(
  'http://HOST[:PORT][/PREFIX], or the same with https:// or h2c://, without user, query and fragment',
  (url) => isBaseUrl(url.replace(/^h2c:/, 'http:')),
)

/** The same, and `h2c`: HTTP/2 without TLS. */
export const upstreamBaseUrl: Kind<string> = {
  ...writtenUpstreamUrl,
  schema: writtenUpstreamUrl.schema.transform((url) => url.replace(/\/+$/, '')),
  show: showUrl,
}

/** Whether the text is a base URL. Text that `new URL` would silently repair or drop is rejected. */
function isBaseUrl(text: string): boolean {
  const [whole, path = '/'] = /^https?:\/\/[^\s/\\?#@$]+(\/[^\s\\?#]*)?$/.exec(text) ?? []
  if (whole === undefined || !URL.canParse(text)) return false
  const { pathname, port } = new URL(text)
  return pathname === path && port !== '0'
}

/** A URL without what may be secret in it: user and password, which end at the last `@`, and the query. */
export function showUrl(url: unknown): string {
  return typeof url === 'string' ? showValue(withoutLogin(url).replace(/\?.*$/s, '?***')) : showValue(url)
}

/**
 * The same without the path too, for URLs that are secrets as a whole. What may be something else than a host is hidden as well: a text
 * without a scheme and a path, and all of a URL with an `@` after its first slash, where a login or a path may continue. To URL parsers
 * a backslash is a slash.
 */
export function showOrigin(url: unknown): string {
  if (typeof url !== 'string') return showValue(url)
  const [scheme = '', slashes = ''] = /^(?:[a-z][a-z0-9+]*:(?=[/\\]))?([/\\]*)/i.exec(url) ?? []
  const [login = ''] = /^.*@/s.exec(url.slice(scheme.length)) ?? []
  const rest = url.slice(scheme.length + login.length)
  const [host = ''] = /^[\p{L}\p{N}.:[\]*_-]*/u.exec(rest) ?? []
  const hidden = rest.slice(host.length)
  const isHost = host !== '' && slashes.length < 3 && !/[^!-~]|[/\\?#]/.test(login)
  if (!isHost || (scheme === '' && !/^[/\\]/.test(hidden))) return showValue(`${scheme}***`)
  const shown = `${scheme}${login && '***@'}${host}`
  return showValue(hidden.length > 1 ? `${shown}${hidden.charAt(0)}***` : `${shown}${hidden}`)
}

function withoutLogin(url: string): string {
  return url.replace(/^([a-z+]*:\/*)?.*@/is, '$1***@')
}
