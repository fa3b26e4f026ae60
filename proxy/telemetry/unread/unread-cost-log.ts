import type { Log } from '../../../shared/log.ts'
import type { Policy } from '../../policy.ts'
import { paceLinesByKey } from '../paced-lines.ts'
import type { UnreadCost } from '../telemetry.ts'

const PACE_MS = 60_000

const explanations: Readonly<Record<Exclude<UnreadCost, 'status'>, string>> = {
  missing:
    'it has no value at the path of settle; clients that stream from language models must set stream_options.include_usage',
  type: 'it is neither JSON nor server-sent events',
  encoding: 'it is compressed, although the request asked for no compression',
  json: 'its JSON is truncated',
  cut: 'it is truncated or missing, usually because the client disconnected',
}

type Unread = {
  readonly policy: Policy
  readonly reason: keyof typeof explanations
  readonly requestId: string
}

/**
 * Logs responses that do not state the cost of their request, at most one line a minute for each policy and reason: the first at once,
 * later ones with the number of responses since the previous line. Error responses need not state a cost, and are not logged.
 */
export function createUnreadCostLog(
  log: Log,
): (policy: Policy, reason: UnreadCost, requestId: string) => void {
  const logPaced = paceLinesByKey<Unread>(PACE_MS, (responses, { policy, reason, requestId }) => {
    const charged = policy.cost?.otherwise ?? 'reserve'
    // Clients that disconnect are normal.
    const level = reason === 'cut' ? 'info' : 'warn'
    log[level](
      { policy: policy.name, reason, why: explanations[reason], charged, responses, requestId },
      'cannot read the cost of responses (cost.settle)',
    )
  })
  return (policy, reason, requestId) => {
    if (reason !== 'status') logPaced(`${reason} ${policy.name}`, { policy, reason, requestId })
  }
}
