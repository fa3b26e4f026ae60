import { methodOverrideFields } from '../http/fields/header-roles.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import type { Target } from './target/target.ts'
import { queryValues } from './values/query-values.ts'

/**
 * Whether the request is a CORS preflight (Fetch standard, section 3.3.3). A request that a backend may handle as another method is not
 * one: because of a header, or of `_method` in the query, which WordPress reads for OPTIONS too. A request with a body or credentials is
 * not one either: browsers never send them with a preflight, and a backend's handler for all methods would serve the request like a POST,
 * so that keys could be guessed. Other headers say nothing, because proxies may have added them.
 */
export function isPreflight(
  { method, headers, hasContent }: Pick<ClientRequest, 'method' | 'headers' | 'hasContent'>,
  { forwardTarget }: Pick<Target, 'forwardTarget'>,
): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined &&
    !hasContent &&
    !neverInPreflights.some((name) => headers[name] !== undefined) &&
    !Object.keys(headers).some((name) => credentials.test(name)) &&
    queryValues(forwardTarget, '_method', 1).length === 0
  )
}

const neverInPreflights = [...methodOverrideFields, 'cookie']
/** Names of headers with credentials, such as `Authorization`, `X-API-Key` and `Private-Token`, but not `:authority`. */
const credentials = /(?:^|-)(?:api-?)?key(?:-|$)|token|auth(?!ority)|secret|session|passw/
