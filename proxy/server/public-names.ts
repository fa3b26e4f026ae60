import type { RequestToForward } from '../http/forward/request-to-forward.ts'
import { publicFields } from '../http/forward/public-fields.ts'
import { uncached } from '../http/forward/response-fields.ts'
import { withDeviceCookies, type AnsweredRequest } from './device-cookies.ts'
import type { HandlerOptions } from './handler-options.ts'

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
