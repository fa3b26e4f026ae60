import type { Log } from '../../shared/log.ts'
import { boundLines } from '../../shared/bounded-lines.ts'
import { loggedCounter, nameRequest, type LoggedRequest } from './access-log.ts'

/** A request that a rule has refused, or that was refused because the limiter was unavailable. */
export type RefusedRequest = LoggedRequest & {
  readonly status: number
  /** Name of the policy that refused the request; undefined if the limiter was unavailable. */
  readonly policy: string | undefined
}

/**
 * Writes one line for each refused request, but at most 100 a second. If lines were suppressed, a line at the end of the second reports how
 * many.
 *
 * @param options.logAddresses if false, no line names a client
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
