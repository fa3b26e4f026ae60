const escapes = /%[0-9a-f]{2}/gi
const unreserved = new Map(
  Array.from('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~', (character) => {
    return [`%${character.charCodeAt(0).toString(16).toUpperCase()}`, character]
  }),
)

/**
 * The one spelling of a path that is both matched and forwarded (RFC 3986 section 6.2.2): escapes of unreserved
 * characters decoded, the others kept in upper-case hex, dot segments resolved (`..` at the root is dropped), and then
 * repeated slashes merged. Its own output comes back unchanged.
 *
 * @param path begins with `/`; every `%` in it begins an escape
 */
export function canonicalPath(path: string): string {
  const segments = path.replace(escapes, canonicalEscape).split('/')
  const kept: string[] = []
  for (const segment of segments) {
    if (segment === '..') kept.pop()
    else if (segment !== '.') kept.push(segment)
  }
  const names = kept.filter((segment) => segment !== '')
  const last = segments.at(-1)
  const endsInSlash = names.length > 0 && (last === '' || last === '.' || last === '..')
  return `/${names.join('/')}${endsInSlash ? '/' : ''}`
}

function canonicalEscape(escape: string): string {
  const upperCase = escape.toUpperCase()
  return unreserved.get(upperCase) ?? upperCase
}
