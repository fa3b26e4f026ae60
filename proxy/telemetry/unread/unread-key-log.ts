import type { Log } from '../../../shared/log.ts'
import type { Policy } from '../../policy.ts'
import { paceLinesByKey } from '../paced-lines.ts'
import type { UnreadKey } from '../telemetry.ts'

const PACE_MS = 60_000

const explanations: Readonly<Record<UnreadKey, string>> = {
  missing: 'there is no body, or no such member or field in it',
  type: 'its Content-Type is neither JSON nor a form, or not that of its bytes',
  charset: 'it is not in UTF-8',
  encoding: 'it is compressed (Content-Encoding)',
  size: 'it is longer than 64 KiB',
  memory: 'there is no memory to hold more bodies',
  syntax: 'it is not valid JSON, or not a valid form',
  value: 'an object or an array is in place of the value',
}

type Unread = { readonly policy: Policy; readonly reason: UnreadKey; readonly requestId: string }

/**
 * Logs requests that count by address, because their body does not identify the client for certain, at most one line a minute for each
 * policy and reason: the first at once, later ones with the number of requests since the previous line.
 */
export function createUnreadKeyLog(log: Log): (policy: Policy, reason: UnreadKey, requestId: string) => void {
  const logPaced = paceLinesByKey<Unread>(PACE_MS, (requests, { policy, reason, requestId }) =>
    log.warn(
      { policy: policy.name, unread: reason, why: explanations[reason], requests, requestId },
      'cannot read the key in request bodies (key: body): counting these requests by address',
    ),
  )
  return (policy, reason, requestId) => logPaced(`${reason} ${policy.name}`, { policy, reason, requestId })
}
