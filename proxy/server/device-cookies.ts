import { isTargetedCacheField } from '../http/forward/response-fields.ts'
import type { ClientRequest } from '../http/message/client-request.ts'
import type { Charge } from '../limits/limiter.ts'
import type { Policy } from '../policy.ts'
import type { Peer } from '../request/addresses/client-address.ts'
import { tellsOutcome } from '../request/outcome.ts'
import type { HiddenCookies } from '../request/values/hidden-cookies.ts'
import type { HandlerOptions } from './handler-options.ts'

/** The request that a response answers. */
export type AnsweredRequest = {
  readonly options: Pick<HandlerOptions, 'devices' | 'scheme' | 'telemetry'>
  readonly request: ClientRequest
  readonly peer: Peer
  readonly charges: readonly Charge[]
}

/**
 * Removes the device cookies that the backend sets from the headers of a response, and adds the gateway's if the response means a
 * successful sign-in.
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
  if (!tellsOutcome(status, request)) return kept
  const isSecure = options.scheme === 'https' || (peer.trusted && wasSentOverHttps(request))
  const cookies = request.headers.cookie ?? ''
  const onIssued = (policy: Policy): void => options.telemetry.deviceIssued(policy)
  for (const value of options.devices.setCookies(charges, { status, cookies, isSecure, onIssued }))
    kept.push('set-cookie', value)
  return kept
}

/** Whether a shared cache could store the response, and send the cookie to other clients. */
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
 * Whether a value forbids shared caches to store the response. `private="Name"` applies to a single header only (RFC 9111 section 5.2.2.7);
 * 0 is the value of `X-Accel-Expires`.
 */
function forbidsSharing(value: string): boolean {
  return value
    .toLowerCase()
    .split(',')
    .some((directive) => ['private', 'no-store', '0'].includes(directive.trim()))
}

/**
 * Whether a page of another site made the browser send the request. The browser does not send its cookie then, but would store the new one,
 * so that a sign-in to an account of the page's owner would replace the user's tokens. Browsers send `Sec-Fetch-Site` over HTTPS and to
 * `localhost`.
 */
function isPostedByOtherSite({ method, headers }: ClientRequest): boolean {
  return method !== 'GET' && method !== 'HEAD' && headers['sec-fetch-site'] === 'cross-site'
}

/** Whether the client used HTTPS. The first value comes from the proxy that is connected to the client. */
function wasSentOverHttps({ headers }: ClientRequest): boolean {
  const sent = headers['x-forwarded-proto']
  const [first = ''] = (typeof sent === 'string' ? sent : '').split(',', 1)
  return first.trim().toLowerCase() === 'https'
}
