import { isTargetedCacheField } from '../http/forward/response-fields.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import type { Charge } from '../limits/limiter.ts'
import type { Policy } from '../policy.ts'
import type { Peer } from '../request/addresses/client-address.ts'
import type { HiddenCookies } from '../request/values/hidden-cookies.ts'
import type { HandlerOptions } from './handler-options.ts'

/** The request that the response answers. */
export type AnsweredRequest = {
  readonly options: Pick<HandlerOptions, 'devices' | 'scheme' | 'telemetry'>
  readonly request: ClientRequest
  readonly peer: Peer
  readonly charges: readonly Charge[]
}

/**
 * The headers of a response without device cookies that the backend sets, and with the gateway's if the response says that somebody
 * has signed in.
 *
 * @param fields name, value, name, value…; names in lower case
 */
export function withDeviceCookies(
  fields: readonly string[],
  status: number,
  { options, request, peer, charges }: AnsweredRequest,
  hidden: HiddenCookies,
): string[] {
  const kept = [...hidden.withoutSetCookies(fields)]
  if (!options.devices || mayBeShared(request, kept) || isPostedByOtherSite(request)) return kept
  const isSecure = options.scheme === 'https' || (peer.trusted && wasSentOverHttps(request))
  const cookies = request.headers.cookie ?? ''
  const onIssued = (policy: Policy): void => options.telemetry.deviceIssued(policy)
  for (const value of options.devices.setCookies(charges, { status, cookies, isSecure, onIssued }))
    kept.push('set-cookie', value)
  return kept
}

/** Whether a shared cache could store the response, and give the cookie to other clients. */
function mayBeShared({ method }: ClientRequest, fields: readonly string[]): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  let isPrivate = false
  for (let i = 0; i < fields.length; i += 2) {
    const [name = '', value = ''] = fields.slice(i, i + 2)
    if (isTargetedCacheField(name) && !forbidsSharing(value)) return true
    if (name === 'cache-control') isPrivate ||= forbidsSharing(value)
  }
  return !isPrivate
}

/**
 * Whether the value forbids shared caches to store the response. `private="Name"` is about a single header (RFC 9111 section 5.2.2.7),
 * and 0 is that of `X-Accel-Expires`.
 */
function forbidsSharing(value: string): boolean {
  return value
    .toLowerCase()
    .split(',')
    .some((directive) => ['private', 'no-store', '0'].includes(directive.trim()))
}

/**
 * Whether a page of another site has made the browser send the request. The browser does not send its own cookie then, but takes the new
 * one: a sign-in to an account of the page's owner would replace the tokens of its user. Browsers say so to HTTPS and `localhost`.
 */
function isPostedByOtherSite({ method, headers }: ClientRequest): boolean {
  return method !== 'GET' && method !== 'HEAD' && headers['sec-fetch-site'] === 'cross-site'
}

/** Whether the client used HTTPS: of several proxies, the first one is connected to the client. */
function wasSentOverHttps({ headers }: ClientRequest): boolean {
  const sent = headers['x-forwarded-proto']
  const [first = ''] = (typeof sent === 'string' ? sent : '').split(',', 1)
  return first.trim().toLowerCase() === 'https'
}
