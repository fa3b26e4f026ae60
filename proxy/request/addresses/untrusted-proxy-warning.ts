import type { Log } from '../../../shared/log.ts'
import { isPrivate } from './address-ranges.ts'
import { isCloudflare } from './trusted-proxies.ts'

/** The number of requests from one peer before the warning. A few such headers prove nothing. */
const MIN_REQUESTS = 100
/** Maximum number of peers whose requests are counted. A gateway has fewer load balancers. */
const MAX_PEERS = 64

/**
 * Detects a load balancer or CDN that is missing in `TRUSTED_PROXIES`: a peer on a private network, or Cloudflare, that sends many requests
 * with a `CLIENT_ADDRESS_HEADER`, which is ignored, so that all clients share the limits of this address. Warns once, and names the
 * settings that help. Cloudflare counts as one peer, because it connects from many addresses.
 *
 * @param options.logAddresses whether the log line may name the peer
 * @param options.clientAddressHeader in lower case
 * @returns a function to call with the peer's address for each request whose header is ignored
 */
export function createUntrustedProxyWarning(
  log: Log,
  {
    logAddresses,
    clientAddressHeader,
  }: { readonly logAddresses: boolean; readonly clientAddressHeader: string },
): (peerAddress: string) => void {
  const requestsOf = new Map<string, number>()
  let hasWarned = false
  const headerName = clientAddressHeader.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())
  return (peerAddress) => {
    if (hasWarned) return
    const ofCloudflare = isCloudflare(peerAddress)
    if (!ofCloudflare && !isPrivate(peerAddress)) return
    const peer = ofCloudflare ? 'cloudflare' : peerAddress
    const requests = (requestsOf.get(peer) ?? 0) + 1
    // Moves the entry to the end, so that the first entry is the least recently used.
    requestsOf.delete(peer)
    requestsOf.set(peer, requests)
    const [first = ''] = requestsOf.keys()
    if (requestsOf.size > MAX_PEERS) requestsOf.delete(first)
    if (requests < MIN_REQUESTS) return
    hasWarned = true
    requestsOf.clear()
    const fields = { peer: logAddresses ? peerAddress : undefined }
    if (ofCloudflare) {
      log.warn(
        fields,
        `${headerName} from an untrusted address of Cloudflare is ignored, so all clients behind it share limits: ` +
          'if your site is behind Cloudflare, set TRUSTED_PROXIES=cloudflare and CLIENT_ADDRESS_HEADER=CF-Connecting-IP',
      )
      return
    }
    const setting = logAddresses ? `TRUSTED_PROXIES=${peerAddress}` : 'TRUSTED_PROXIES to its address'
    log.warn(
      fields,
      `${headerName} from an untrusted private address is ignored, so all clients behind it share one limit: ` +
        `if it is your load balancer, set ${setting}`,
    )
  }
}
