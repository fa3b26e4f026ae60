import type { ClientRequest } from '../../http/message/client-request.ts'
import { unknownClient, type Peer } from '../../request/addresses/client-address.ts'
import { readRequestHead, type HeadOptions } from '../../request/request-head.ts'
import { MAX_BODY_BYTES, whyUnread, withRequestedUnits } from '../costs/requested-charges.ts'
import type { SentBody } from '../keys/body/body-values.ts'
import type { DecideOptions, RequestContext } from '../verdict.ts'

type UnservedOptions = {
  /** Whether the request is a WebSocket handshake that the gateway accepts. */
  readonly upgrades: boolean
  /** The body; undefined if the request has no body, or it is unknown. */
  readonly body: Buffer | undefined
}

/** Creates the context of a request that is decided about without being served: one from a log, or one that an operator asks about. */
export function createUnservedRequest(
  request: ClientRequest,
  peer: Peer,
  head: HeadOptions,
  { upgrades = false, body }: Partial<UnservedOptions> = {},
): RequestContext {
  return {
    request,
    peer,
    isFinished: false,
    isForwardedByAnother: false,
    readHead: () => readRequestHead(request, head, upgrades),
    readBody: () => (body ? readPartOf(body) : missing),
    readUnits: (charges) =>
      withRequestedUnits(charges, whyUnread(request) ?? body ?? 'missing', { reserveUnread: ignore }),
    onUnreadKey: ignore,
    onPlan: ignore,
    onAsk: ignore,
    clientAddress: unknownClient,
    head: undefined,
    matched: [],
    applying: [],
    charges: [],
  }
}

const missing: SentBody = { unread: 'missing' }

const ignore = (): void => undefined

/** Returns the part of a body that rules read. */
export function readPartOf(body: Buffer): SentBody {
  if (body.length === 0) return missing
  return { bytes: body.subarray(0, MAX_BODY_BYTES), isWhole: body.length <= MAX_BODY_BYTES }
}

/** A limiter that counts nothing, for requests that are only decided about. */
export const countsNothing: DecideOptions['limiter'] = {
  decide: () => ({ outcome: 'allowed', states: [] }),
}

/** A table without bans and overrides. */
export const noEntries: DecideOptions['entries'] = {
  findAddressBan: () => undefined,
  findKeyBan: () => undefined,
  withOverrides: (charges) => charges,
}
