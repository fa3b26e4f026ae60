import type { ClientRequest } from '../../http/message/messages.ts'
import { unknownClient, type Peer } from '../../request/addresses/client-address.ts'
import { readRequestHead, type HeadOptions } from '../../request/request-head.ts'
import type { AskedRequest, DecisionTable } from '../verdict.ts'

/**
 * A request that is decided about without being served: from a log, or asked about by an operator.
 *
 * @param upgrades it is a WebSocket handshake that is taken up
 */
export function createUnservedRequest(
  request: ClientRequest,
  peer: Peer,
  head: HeadOptions,
  upgrades = false,
): AskedRequest {
  return {
    request,
    peer,
    isOver: false,
    readHead: () => readRequestHead(request, head, upgrades),
    clientAddress: unknownClient,
    head: undefined,
    matched: [],
    applying: [],
    charges: [],
  }
}

/** A limiter for requests that are decided about without being counted. */
export const countsNothing: DecisionTable['limiter'] = {
  decide: () => ({ outcome: 'allowed', states: [] }),
}

/** Nobody is banned, or has a limit that was set at run time. */
export const noEntries: DecisionTable['entries'] = {
  findAddressBan: () => undefined,
  findKeyBan: () => undefined,
  withOverrides: (charges) => charges,
}
