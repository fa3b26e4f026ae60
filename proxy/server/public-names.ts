import type { RequestToForward } from '../http/forward/request-to-forward.ts'
import { publicFields } from '../http/forward/public-fields.ts'
import { uncached } from '../http/forward/response-fields.ts'
import { withDeviceCookies, type AnsweredRequest } from './device-cookies.ts'
import type { HandlerOptions } from './handler-options.ts'

/** The names of a request's resource as seen by the client and by the backend. */
export type BackendNames = {
  /** The host that the client requested. */
  readonly host: string
  /** The host that is sent to the backend; undefined if it is the same. */
  readonly sentHost: string | undefined
  /** The path prefix that is removed for the backend. */
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
    // The 200 of a challenge is not a successful sign-in.
    if (isUncached)
      return { ...head, fields: uncached(hiddenCookies ? hiddenCookies.withoutSetCookies(fields) : fields) }
    return {
      ...head,
      fields: hiddenCookies ? withDeviceCookies(fields, head.status, request, hiddenCookies) : fields,
    }
  }
}
