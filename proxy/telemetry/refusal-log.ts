import type { Log } from '../../shared/log.ts'
import { boundLines } from '../../shared/bounded-lines.ts'
import { loggedCounter, nameRequest, type LoggedRequest } from './access-log.ts'

/** A request that a rule has refused, or that was refused because the limiter was unavailable. */
export type RefusedRequest = LoggedRequest & {
  readonly status: number
  /** Name of the policy that refused it; undefined if none could be asked. */
  readonly policy: string | undefined
}

/**
 * Writes one line for each refused request, but no more than 100 a second. At the end of such a second a line reports how many lines were
 * suppressed.
 *
 * @param options.logAddresses without it no line names a client
 */
export function createRefusalLog(
  log: Log,
  options: { readonly logAddresses: boolean },
): (refused: RefusedRequest) => void {
  const mayWrite = boundLines((leftOut) => log.info({ leftOut }, 'refusal log lines suppressed'))
  return (refused) => {
    if (!mayWrite()) return
    const { status, policy, device, plan } = refused
    const counter = loggedCounter(refused, options)
    log.info({ ...nameRequest(refused, options), status, policy, counter, device, plan }, 'request refused')
  }
}
