import type { Log } from '../../../shared/log.ts'
import { isPrivate } from './address-ranges.ts'

/** Requests of one peer before the warning: a few such headers prove nothing. */
const enoughRequests = 100
/** Maximum number of peers whose requests are counted; one gateway has fewer load balancers. */
const maxPeers = 64

/**
 * Detects a load balancer that is missing in `TRUSTED_PROXIES`: a peer on a private network that sends many requests
 * with a `CLIENT_ADDRESS_HEADER`, which is ignored. All clients then share the limits of that one address. Warns once, with
 * the setting that helps.
 *
 * @param options.logAddresses without it the line does not name the peer
 * @param options.clientAddressHeader in lower case
 * @returns a function to call with the peer's address for each request whose field is not believed
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
    // Moves it to the end: the first entry is always the least recently used.
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
