import { isPreflight } from '../../http/fields/cors.ts'
import type { ClientRequest } from '../../http/message/messages.ts'
import type { Policy } from '../../policy.ts'
import type { ClientAddress, Peer } from '../../request/addresses/client-address.ts'
import { localReply, whyRejected } from '../../request/local-replies.ts'
import { readRequestHead, type RequestHead } from '../../request/request-head.ts'
import type { RequestTable } from './request-table.ts'

/**
 * What becomes of a request before its rules count it.
 *
 * - `rejected`: the gateway answers it with an error for its form.
 * - `answered`: the gateway answers OPTIONS itself.
 * - `denied`: `denyList` has the client.
 * - `limited`: `matched` are the policies of the rules that match, `applying` what is left of them after `allowList`, with
 *   overrides in the place of their rules.
 */
export type ReadRequest =
  | {
      readonly outcome: 'rejected'
      readonly client: ClientAddress
      readonly status: number
      readonly why: string
    }
  | { readonly outcome: 'answered'; readonly client: ClientAddress; readonly head: RequestHead }
  | { readonly outcome: 'denied'; readonly client: ClientAddress; readonly head: RequestHead }
  | {
      readonly outcome: 'limited'
      readonly client: ClientAddress
      readonly head: RequestHead
      readonly matched: readonly Policy[]
      readonly applying: readonly Policy[]
    }

/**
 * Takes a request through the first steps of `Exchange`, in the same order and by the same functions. A test compares the two.
 *
 * @param upgrades it is a WebSocket handshake that is taken up
 */
export function readRequest(
  { table, preflightTable, lists, addresses, head: options }: RequestTable,
  peer: Peer,
  request: ClientRequest,
  upgrades: boolean,
): ReadRequest {
  const client = addresses.readClientAddress(peer, request.headers[addresses.header])
  const head = readRequestHead(request, options, upgrades)
  if ('reason' in head) return { outcome: 'rejected', client, status: head.reply.status, why: head.why }
  const own = localReply(request, head.target)
  if (own === 'options') return { outcome: 'answered', client, head }
  if (own) return { outcome: 'rejected', client, status: own.status, why: whyRejected(own) }
  if (lists.denies(client, request)) return { outcome: 'denied', client, head }
  const { method, headers } = request
  const rules = preflightTable && isPreflight(request) ? preflightTable : table
  const matched = rules.match(head.target, method, headers, head.host)
  return { outcome: 'limited', client, head, matched, applying: lists.applying(matched, client, request) }
}
