import { declaredLength } from '../../http/fields/framing.ts'
import { linesOf } from '../../http/message/headers.ts'
import type { ClientRequest } from '../../http/message/client-request.ts'
import type { Charge } from '../limiter.ts'
import { requestedUnits, type Policy, type RequestedUnits } from '../../policy.ts'
import type { Telemetry, UnreadReserve } from '../../telemetry/telemetry.ts'
import { largestQuota } from '../../policy/plans.ts'
import { findMember } from './json-members.ts'

/** Maximum bytes of a request's body to read. */
export const MAX_BODY_BYTES = 64 * 1024

/** Whether the units to reserve for the charge are read from the request's body. */
export function readsUnits({ policy }: Charge): boolean {
  return requestedUnits(policy) !== undefined
}

/**
 * Returns why, by its head, a request's body need not be read: it is missing, or a backend may not read it as JSON. Undefined if it has to
 * be read.
 */
export function whyUnread(request: ClientRequest): UnreadReserve | undefined {
  if (!request.hasContent) return 'missing'
  if ((declaredLength(request) ?? 0) > MAX_BODY_BYTES) return 'size'
  if (
    linesOf(request.rawHeaders, 'content-encoding').some(
      (coding) => coding.trim().toLowerCase() !== 'identity',
    )
  )
    return 'encoding'
  const types = linesOf(request.rawHeaders, 'content-type')
  return types.length > 1 || !types.every(isJson) ? 'type' : undefined
}

/** Whether a content type is JSON. A charset must be UTF-8, the only encoding of JSON (RFC 8259 section 8.1). */
function isJson(line: string): boolean {
  const [type = '', ...parameters] = line.split(';')
  return (
    /^\s*(?:application\/(?:[\w.+-]+\+)?json|text\/json)\s*$/i.test(type) &&
    parameters.every(
      (parameter) => !/charset|,/i.test(parameter) || /^\s*charset\s*=\s*"?utf-?8"?\s*$/i.test(parameter),
    )
  )
}

/**
 * Returns the charges with the units that the request states, at most the quota. If the request states no number, reserves `otherwise`. If
 * it states something that a backend could read as any number, reserves the whole quota, so that no client pays less by sending an
 * unreadable body. If the store is yet to read the client's plan, the quota is the largest that the client may have (`unitsOf`).
 *
 * @param body the whole body, or why it cannot be read
 */
export function withRequestedUnits(
  charges: readonly Charge[],
  body: Buffer | UnreadReserve,
  telemetry: Pick<Telemetry, 'reserveUnread'>,
): readonly Charge[] {
  const parsed = parse(body)
  const noted = new Set<Policy>()
  return charges.map((charge) => {
    const { policy } = charge
    const requested = requestedUnits(policy)
    if (!requested) return charge
    const read = 'json' in parsed ? largestAt(parsed.json, requested) : parsed.unread
    const whole = largestQuota(policy)
    if (typeof read === 'number') return { ...charge, units: Math.min(read, whole) }
    if (!noted.has(policy)) telemetry.reserveUnread(policy, read)
    noted.add(policy)
    const units = read === 'missing' ? (requested.otherwise ?? whole) : whole
    return { ...charge, units: Math.min(units, whole) }
  })
}

function parse(body: Buffer | UnreadReserve): { readonly json: string } | { readonly unread: UnreadReserve } {
  if (typeof body === 'string') return { unread: body }
  if (body.length === 0) return { unread: 'missing' }
  try {
    const json = utf8.decode(body)
    JSON.parse(json)
    return { json }
  } catch {
    return { unread: 'json' }
  }
}

/** Keeps a byte order mark, which makes the text invalid JSON. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The largest number that a request states, or why it does not state one. A reason other than `missing` takes precedence over numbers. */
function largestAt(json: string, { paths }: RequestedUnits): number | UnreadReserve {
  let largest: number | undefined
  for (const path of paths) {
    const units = unitsAt(json, path)
    if (units === 'missing') continue
    if (typeof units === 'string') return units
    largest = Math.max(largest ?? 0, units)
  }
  return largest ?? 'missing'
}

/**
 * The units at a path. Null counts as missing, as it does for backends. A number below 1 is not valid, because many backends read 0 and
 * less as no limit.
 */
function unitsAt(json: string, path: readonly string[]): number | UnreadReserve {
  const found = findMember(json, path)
  if (found.kind === 'absent') return 'missing'
  if (found.kind === 'repeated') return 'repeated'
  const value = found.kind === 'value' ? found.value : undefined
  if (value === null) return 'missing'
  return typeof value === 'number' && value >= 1 ? Math.ceil(value) : 'number'
}
