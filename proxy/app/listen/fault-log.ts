import type { Log } from '../../../shared/log.ts'
import { formatAddress, parseAddress } from '../../request/addresses/ip-address.ts'
import type { Fault } from '../../http/connection/http1/faults.ts'
import { paceLinesByKey } from '../../telemetry/paced-lines.ts'

/** Milliseconds between lines with the same reason. */
const PACE_MS = 60_000

/**
 * Logs client input that could not be parsed as a request, with the reason, which names the setting if one bounds the input. There are few
 * reasons, and each has at most one line a minute. At debug level, each request has a line.
 */
export function createFaultLog(
  log: Log,
  { logAddresses }: { readonly logAddresses: boolean },
): (found: Fault, peerAddress: string | undefined) => void {
  const logPaced = paceLinesByKey<{ status: number; reason: string; peer: string | undefined }>(
    PACE_MS,
    (requests, { status, reason, peer }) =>
      log.info(
        { requests, status, reason, peer: logAddresses ? peer : undefined },
        'requests rejected: they could not be read',
      ),
  )
  return ({ reply: { status }, reason }, peer) => {
    log.debug({ status, reason }, 'request rejected')
    logPaced(reason, { status, reason, peer: peer && textOf(peer) })
  }
}

/** Formats the address of a peer. An IPv4-mapped IPv6 address becomes IPv4. */
function textOf(peer: string): string {
  const address = parseAddress(peer)
  return address ? formatAddress(address) : peer
}
