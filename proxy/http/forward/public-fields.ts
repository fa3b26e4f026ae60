/** How the client and the backend name resources whose host or path is rewritten. */
export type PublicNames = {
  /** The `Host` of the request. */
  readonly publicHost: string
  /** The `Host` that the backend was sent. */
  readonly sentHost: string
  /** The prefix removed from the path; empty for none. */
  readonly prefix: string
}

/**
 * Rewrites, for the client, the fields of a response that name a path or a host: `Location`, `Content-Location`, `Link`, `Refresh` and the
 * `Path` of cookies. Only paths of the same host are changed, and only if they do not begin with the prefix yet: backends that read
 * `X-Forwarded-Prefix` write it themselves.
 *
 * @param fields name, value, name, value…; names in lower case
 */
export function publicFields(fields: readonly string[], names: PublicNames): string[] {
  return fields.map((value, i) => {
    if (i % 2 === 0) return value
    const name = fields[i - 1]
    switch (name) {
      case 'location':
      case 'content-location':
        return publicLocation(value, names)
      case 'link':
        return publicLinks(value, names)
      case 'refresh':
        return publicRefresh(value, names)
      case 'set-cookie':
        return names.prefix === '' ? value : publicCookie(value, names.prefix)
      default:
        return value
    }
  })
}

/**
 * Rewrites the targets of `<target>; parameters, <target>…` (RFC 8288 section 3). Angle brackets in quoted parameters do not delimit a
 * target. A quote that is never closed extends to the end of the value: searching for an end after each further quote would take quadratic
 * time.
 */
function publicLinks(value: string, names: PublicNames): string {
  return value.replace(/"(?:[^"\\]|\\.?)*(?:"|$)|<([^<>"]*)>/gs, (part, target: string | undefined) =>
    target === undefined ? part : `<${publicLocation(target, names)}>`,
  )
}

/** Reads `5; url=/x` as browsers do (HTML, shared declarative refresh steps): with quotes, with `,` in place of `;`, or without `url=`. */
function publicRefresh(value: string, names: PublicNames): string {
  const [before] = /^[\s\d.]*[;,]\s*(?:url\s*=\s*)?['"]?/i.exec(value) ?? []
  if (before === undefined) return value
  const [target = ''] = value.slice(before.length).split(/['"]/, 1)
  if (target === '') return value
  return before + publicLocation(target, names) + value.slice(before.length + target.length)
}

/** Rewrites an absolute path or a URL of the backend. Other references are relative to the URL that the client asked for. */
function publicLocation(value: string, { publicHost, sentHost, prefix }: PublicNames): string {
  const [origin, authority] = /^(?:https?:)?\/\/([^/?#\\]*)/i.exec(value) ?? []
  if (origin === undefined || authority === undefined)
    return value.startsWith('/') ? withPrefix(value, prefix) : value
  const rest = value.slice(origin.length)
  if (isSameHost(authority, publicHost)) return prefix === '' ? value : origin + withPrefix(rest, prefix)
  if (!isSameHost(authority, sentHost)) return value
  // Browsers would read two slashes, or characters that they take for slashes, as the beginning of a host.
  return withPrefix(`/${rest.replace(/^[/\\\s]+/, '')}`, prefix)
}

/** Whether two hosts are the same, apart from letter case and the usual ports, 80 and 443. */
export function isSameHost(one: string, other: string): boolean {
  const named = (host: string): string => host.toLowerCase().replace(/:(?:80|443)?$/, '')
  return named(one) === named(other)
}

function withPrefix(path: string, prefix: string): string {
  const next = path.startsWith(prefix) ? path.charAt(prefix.length) : undefined
  if (next !== undefined && (next === '' || '/?#'.includes(next))) return path
  return prefix + (path.startsWith('/') ? path : `/${path}`)
}

/**
 * Adds the prefix to the `Path` of a cookie. A cookie whose name begins with `__Host-` is not changed: browsers refuse it without `Path=/`.
 * A cookie without `Path` is not changed either: it applies to the path that the client requested.
 */
function publicCookie(value: string, prefix: string): string {
  if (/^\s*__host-/i.test(value)) return value
  const [pair = '', ...attributes] = value.split(';')
  const changed = attributes.map((attribute) =>
    attribute.replace(/^(\s*path\s*=\s*)(\/.*)$/i, (_, name: string, path: string) => {
      return name + (path.trim() === '/' ? prefix : withPrefix(path, prefix))
    }),
  )
  return [pair, ...changed].join(';')
}
