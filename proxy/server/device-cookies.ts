import type { ClientRequest } from '../http/message/messages.ts'
import type { Charge } from '../limits/limiter.ts'
import type { Policy } from '../policy.ts'
import type { Peer } from '../request/addresses/client-address.ts'
import type { HiddenCookies } from '../request/values/hidden-cookies.ts'
import type { HandlerOptions } from './handler-options.ts'

/** The request that is answered. */
export type Answered = {
  readonly options: Pick<HandlerOptions, 'devices' | 'scheme' | 'telemetry'>
  readonly request: ClientRequest
  readonly peer: Peer
  readonly charges: readonly Charge[]
}

/**
 * The headers of a response without device cookies of the backend's, and with those of the gateway where it says that
 * somebody has signed in.
 *
 * @param fields name, value, name, value…; names in lower case
 */
export function withDeviceCookies(
  fields: readonly string[],
  status: number,
  { options, request, peer, charges }: Answered,
  hidden: HiddenCookies,
): string[] {
  const kept = [...hidden.withoutSetCookies(fields)]
  if (!options.devices || mayBeShared(request, kept)) return kept
  const isSecure = options.scheme === 'https' || (peer.trusted && saysHttps(request))
  const cookies = request.headers.cookie ?? ''
  const onIssued = (policy: Policy): void => options.telemetry.deviceIssued(policy)
  for (const value of options.devices.setCookies(charges, { status, cookies, isSecure, onIssued }))
    kept.push('set-cookie', value)
  return kept
}

/** A cache may give its response to other clients too, with the cookie. */
function mayBeShared({ method }: ClientRequest, fields: readonly string[]): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  return !fields.some(
    (value, i) => i % 2 === 1 && fields[i - 1] === 'cache-control' && /\b(?:private|no-store)\b/i.test(value),
  )
}

/** The first of several proxies is the one that the client is connected to. */
function saysHttps({ headers }: ClientRequest): boolean {
  const sent = headers['x-forwarded-proto']
  const [first = ''] = (typeof sent === 'string' ? sent : '').split(',', 1)
  return first.trim().toLowerCase() === 'https'
}
