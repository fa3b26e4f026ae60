import type { GatewaySettings } from '../../config/settings.ts'
import { explain, explainUnparsed, type Asked, type Explanation } from '../../limits/explain/explain.ts'
import { parseRequest } from './parse-request.ts'

/**
 * Explains a request that comes over a connection from this address.
 *
 * @param head the request line and the headers, one character a byte
 * @returns undefined if the address is invalid
 */
export async function explainHead(
  { head, ip }: { readonly head: string; readonly ip: string },
  settings: GatewaySettings,
  known: Pick<Asked, 'table' | 'tokens' | 'runTime'>,
): Promise<Explanation | undefined> {
  const peer = known.table.addresses.readPeer(ip)
  if (!peer) return undefined
  const parsed = parseRequest(settings, head)
  if ('status' in parsed) return explainUnparsed(peer, parsed.status, parsed.why)
  return explain({ ...known, peer, ...parsed })
}
