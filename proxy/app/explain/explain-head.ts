import type { GatewaySettings } from '../../config/settings.ts'
import type { AskedHead } from '../../admin/client-operations.ts'
import {
  explain,
  explainUnparsed,
  type RequestToExplain,
  type Explanation,
} from '../../limits/explain/explain.ts'
import { parseRequest } from './parse-request.ts'

/**
 * Explains a request that arrives on a connection from this address.
 *
 * @returns undefined if the address is invalid
 */
export async function explainHead(
  { head, ip, body }: AskedHead,
  settings: GatewaySettings,
  known: Pick<RequestToExplain, 'table' | 'tokens' | 'runTime'>,
): Promise<Explanation | undefined> {
  const peer = known.table.limits.addresses.readPeer(ip)
  if (!peer) return undefined
  const parsed = parseRequest(settings, head)
  if ('status' in parsed) return explainUnparsed(peer, parsed.status, parsed.reason)
  return explain({ ...known, peer, ...parsed, body: body === undefined ? undefined : Buffer.from(body) })
}
