import type { ForwardRequest } from '../http/forward/forward-request.ts'
import { MAX_TAGS, type ReferenceNames } from '../http/forward/private-references.ts'
import { publicFields } from '../http/forward/public-fields.ts'
import { uncached } from '../http/forward/response-fields.ts'
import type { ClientRequest } from '../http/message/messages.ts'
import { readTarget } from '../request/target/target.ts'
import { withDeviceCookies, type Answered } from './device-cookies.ts'
import type { HandlerOptions, RoutedUpstream } from './handler-options.ts'

/** How a request is named at its backend, where that differs from how its client has named it. */
export type BackendNames = {
  /** The host that the client has asked for. */
  readonly host: string
  /** The host that the backend is sent; undefined for the same. */
  readonly sentHost: string | undefined
  /** The path prefix that the backend is not sent. */
  readonly strippedPrefix: string | undefined
}

/** Turns the head of the backend's response into the client's. Undefined if the client gets it as the backend has sent it. */
export function publicHead(
  request: Answered & { readonly options: Pick<HandlerOptions, 'hiddenCookies'> },
  { host, sentHost, strippedPrefix: prefix = '' }: BackendNames,
  isUncached: boolean,
): ForwardRequest['publicHead'] {
  const { hiddenCookies } = request.options
  const isRenamed = sentHost !== undefined || prefix !== ''
  if (!isRenamed && !hiddenCookies && !isUncached) return undefined
  const names = { publicHost: host, sentHost: sentHost ?? host, prefix }
  return (head) => {
    const fields = isRenamed ? publicFields(head.fields, names) : head.fields
    // A challenge that answers 200 does not say that somebody has signed in.
    if (isUncached)
      return { ...head, fields: uncached(hiddenCookies ? hiddenCookies.withoutSetCookies(fields) : fields) }
    return {
      ...head,
      fields: hiddenCookies ? withDeviceCookies(fields, head.status, request, hiddenCookies) : fields,
    }
  }
}

/**
 * How references in the headers of a request are renamed for the backend; undefined if there are none, or the names are the same.
 *
 * @param prefix path prefix of the backend
 */
export function referencesOf(
  { headers }: ClientRequest,
  publicHost: string,
  prefix: string,
  sentHost = publicHost,
  route?: RoutedUpstream,
): ReferenceNames | undefined {
  if (headers['destination'] === undefined && headers['if'] === undefined) return undefined
  const { stripPrefix, setHeaders } = route ?? {}
  if (!stripPrefix && prefix === '' && sentHost === publicHost) return undefined
  // Backends that read this header, such as Radicale, remove the prefix themselves.
  if (stripPrefix && setHeaders?.has('x-script-name')) return undefined
  const toPrivate = (path: string): string | undefined => {
    const target = readTarget('GET', path, { headers: {} })
    if (typeof target === 'string' || target.authority !== undefined) return undefined
    const rest = stripPrefix ? stripPrefix(target)?.target : target.forwardTarget
    return rest === undefined ? undefined : prefix + rest
  }
  return { publicHost, sentHost, toPrivate, tagsLeft: MAX_TAGS }
}
