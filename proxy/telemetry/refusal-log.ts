import type { Log } from '../../shared/log.ts'
import { loggedCounter, nameRequest, type LoggedRequest } from './access-log.ts'

/** A request that a rule has refused, or that was refused because the limiter was unavailable. */
export type RefusedRequest = LoggedRequest & {
  readonly status: number
  /** Name of the policy that refused it; undefined if none could be asked. */
  readonly policy: string | undefined
}

const linesPerSpan = 100
const spanMs = 1_000

/**
 * Writes one line for each refused request, but no more than 100 a second: so that a flood of refusals costs little, and does not
 * hide other log lines. At the end of such a second a line reports how many lines were suppressed.
 *
 * @param options.logAddresses without it no line names a client
 */
export function createRefusalLog(
  log: Log,
  options: { readonly logAddresses: boolean },
): (refused: RefusedRequest) => void {
  let span: NodeJS.Timeout | undefined
  let lines = 0
  let leftOut = 0
  const endSpan = (): void => {
    span = undefined
    lines = 0
    if (leftOut > 0) log.info({ leftOut }, 'refusal log lines suppressed')
    leftOut = 0
  }
  return (refused) => {
    // The timer must not keep the process alive.
    span ??= setTimeout(endSpan, spanMs).unref()
    if (lines === linesPerSpan) {
      leftOut += 1
      return
    }
    lines += 1
    const { status, policy, device, plan } = refused
    const counter = loggedCounter(refused, options)
    log.info({ ...nameRequest(refused, options), status, policy, counter, device, plan }, 'request refused')
  }
}
