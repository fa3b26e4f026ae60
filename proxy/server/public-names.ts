import type { RequestToForward } from '../http/forward/request-to-forward.ts'
import { MAX_TAGS, type ReferenceNames } from '../http/forward/private-references.ts'
import { publicFields } from '../http/forward/public-fields.ts'
import { uncached } from '../http/forward/response-fields.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import { readTarget } from '../request/target/target.ts'
import { withDeviceCookies, type AnsweredRequest } from './device-cookies.ts'
import type { HandlerOptions, RoutedUpstream } from './handler-options.ts'

/** How the backend's names of a request's resource differ from the client's. */
export type BackendNames = {
  /** The host that the client has asked for. */
  readonly host: string
  /** The host that the backend is sent; undefined for the same. */
  readonly sentHost: string | undefined
  /** The path prefix that the backend is not sent. */
  readonly strippedPrefix: string | undefined
}

/** Makes the function that rewrites the head of the backend's response for the client; undefined if nothing is rewritten. */
export function publicHead(
  request: AnsweredRequest & { readonly options: Pick<HandlerOptions, 'hiddenCookies'> },
  { host, sentHost, strippedPrefix: prefix = '' }: BackendNames,
  isUncached: boolean,
): RequestToForward['publicHead'] {
  const { hiddenCookies } = request.options
  const isRenamed = sentHost !== undefined || prefix !== ''
  if (!isRenamed && !hiddenCookies && !isUncached) return undefined
  const names = { publicHost: host, sentHost: sentHost ?? host, prefix }
  return (head) => {
    const fields = isRenamed ? publicFields(head.fields, names) : head.fields
    // The 200 of a challenge does not mean that somebody has signed in.
    if (isUncached)
      return { ...head, fields: uncached(hiddenCookies ? hiddenCookies.withoutSetCookies(fields) : fields) }
    return {
      ...head,
      fields: hiddenCookies ? withDeviceCookies(fields, head.status, request, hiddenCookies) : fields,
    }
  }
}

/**
 * How references in the headers of a request are renamed for the backend; undefined without references, or if the names are the same.
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
