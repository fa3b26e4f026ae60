import { isSameHost } from './public-fields.ts'

/** The client's names for resources that the backend knows under another host or path. */
export type ReferenceNames = {
  /** The `Host` of the request. */
  readonly publicHost: string
  /** The `Host` that the backend is sent. */
  readonly sentHost: string
  /** Translates a path of the client, with its query, into the one sent to the backend; undefined if it is not below the prefix. */
  readonly toPrivate: (path: string) => string | undefined
  /**
   * How many more tags of `If` to rewrite, in all lines of a request, because each takes as long as a target. Clients send one or two.
   * Further tags stay as they are, and match no resource of the backend.
   */
  tagsLeft: number
}

/** The initial `tagsLeft` of a request. */
export const MAX_TAGS = 4

/**
 * Rewrites, for the backend, the fields of a request that name a resource: `Destination` and `If` (RFC 4918 sections 10.3 and
 * 10.4). Only references to the same host are changed.
 *
 * @param name of the field, in lower case
 * @returns undefined for a `Destination` on the same host that the backend has no name for
 */
export function privateReference(name: string, value: string, names: ReferenceNames): string | undefined {
  if (name !== 'if') return privateUrl(value, names)
  return privateTags(value, names)
}

const origin = /^((?:https?:)?\/\/)?([^/?#\\]*)/i

function privateUrl(value: string, { publicHost, sentHost, toPrivate }: ReferenceNames): string | undefined {
  const [sent = '', scheme, authority = ''] = origin.exec(value) ?? []
  if (scheme === undefined) return value.startsWith('/') ? toPrivate(value) : value
  if (!isSameHost(authority, publicHost)) return value
  const rest = value.slice(sent.length)
  const path = toPrivate(rest.startsWith('/') ? rest : `/${rest}`)
  return path === undefined ? undefined : `${scheme}${sentHost === publicHost ? authority : sentHost}${path}`
}

/**
 * Rewrites the tags of lists, which are in angle brackets outside of the lists. A list contains state tokens and, in quotes, entity tags.
 */
function privateTags(value: string, names: ReferenceNames): string {
  let written = ''
  let from = 0
  for (let at = 0; at < value.length; at++) {
    if (value[at] === '(') at = endOfList(value, at)
    else if (value[at] === '<') {
      if (names.tagsLeft-- <= 0) break
      const end = value.indexOf('>', at)
      if (end === -1) break
      const url = value.slice(at + 1, end)
      written += `${value.slice(from, at)}<${privateUrl(url, names) ?? url}>`
      from = end + 1
      at = end
    }
  }
  return written + value.slice(from)
}

/** Returns the offset of the end of the list that begins at `from`; the length of the text if the list does not end. */
function endOfList(value: string, from: number): number {
  let isQuoted = false
  for (let at = from; at < value.length; at++) {
    if (value[at] === '"') isQuoted = !isQuoted
    else if (value[at] === ')' && !isQuoted) return at
  }
  return value.length
}
