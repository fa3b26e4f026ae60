import { isIP } from 'node:net'
import { showValue } from './problems.ts'
import { text } from './kinds.ts'
import type { Kind } from './table.ts'

/** An IP address or a host name to listen on. IPv6 addresses have no brackets. */
export const listenHost = text(
  'an IP address or a host name, without a port and without brackets',
  (host) => isIP(host) > 0 || /^[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?$/.test(host),
)

const writtenBaseUrl = text(
  'http://HOST[:PORT][/PREFIX] or https://HOST[:PORT][/PREFIX], without user, query and fragment',
  isBaseUrl,
)

/** A base URL, http or https. Its path, if any, is a prefix. A final slash is removed. */
export const baseUrl: Kind<string> = {
  ...writtenBaseUrl,
  schema: writtenBaseUrl.schema.transform((url) => url.replace(/\/+$/, '')),
  show: showUrl,
}

const writtenUpstreamUrl = text(
  'http://HOST[:PORT][/PREFIX], or the same with https:// or h2c://, without user, query and fragment',
  (url) => isBaseUrl(url.replace(/^h2c:/, 'http:')),
)

/** A base URL of a backend: also `h2c`, which is HTTP/2 without TLS. */
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

/** Shows a URL without the parts that may be secret: user and password, which end at the last `@`, and the query. */
export function showUrl(url: unknown): string {
  return typeof url === 'string' ? showValue(withoutLogin(url).replace(/\?.*$/s, '?***')) : showValue(url)
}

/**
 * Shows a URL as `showUrl` does, and without its path too, for URLs that are secrets as a whole. Also hides text that may not be a host: a
 * text with neither scheme nor path, and all of a URL with an `@` after its first slash, where a login or a path may continue. URL parsers
 * read a backslash as a slash.
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
