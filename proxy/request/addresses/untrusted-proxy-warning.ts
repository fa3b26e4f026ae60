import type { Log } from '../../../shared/log.ts'
import { isPrivate } from './address-ranges.ts'

/** The number of requests from one peer before the warning. A few such headers prove nothing. */
const enoughRequests = 100
/** Maximum number of peers whose requests are counted. A gateway has fewer load balancers. */
const maxPeers = 64

/**
 * Detects a load balancer that is missing in `TRUSTED_PROXIES`: a peer on a private network that sends many requests with a
 * `CLIENT_ADDRESS_HEADER`, which is ignored, so that all clients share the limits of this address. Warns once, and names the setting that
 * helps.
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
    if (hasWarned || !isPrivate(peerAddress)) return
    const requests = (requestsOf.get(peerAddress) ?? 0) + 1
    // Moves the entry to the end, so that the first entry is the least recently used.
    requestsOf.delete(peerAddress)
    requestsOf.set(peerAddress, requests)
    const [first = ''] = requestsOf.keys()
    if (requestsOf.size > maxPeers) requestsOf.delete(first)
    if (requests < enoughRequests) return
    hasWarned = true
    requestsOf.clear()
    const setting = logAddresses ? `TRUSTED_PROXIES=${peerAddress}` : 'TRUSTED_PROXIES to its address'
    log.warn(
      { peer: logAddresses ? peerAddress : undefined },
      `${headerName} from an untrusted private address is ignored, so all clients behind it share one limit: ` +
        `if it is your load balancer, set ${setting}`,
    )
  }
}
