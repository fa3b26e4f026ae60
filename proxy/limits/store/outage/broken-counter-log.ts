import type { Log } from '../../../../shared/log.ts'
import type { Policy } from '../../../policy.ts'
import { onceAMinute } from '../../../telemetry/paced-lines.ts'
import { describePolicy, keyOf } from '../redis/keys.ts'
import type { BatchHooks } from '../remote-counters.ts'

const BROKEN_COUNTER = 'a Redis key matching this pattern does not hold a counter: find and delete it'

/**
 * Logs a key that does not hold a counter, at most once a minute for each policy. The key itself may identify a person and
 * is not logged.
 */
export function createBrokenCounterLog(
  log: Log,
  now: () => number,
  keyPrefix: string,
): BatchHooks['counterBroken'] {
  const mayLogOf = new WeakMap<Policy, () => boolean>()
  return (policies, reason) => {
    for (const policy of policies) {
      const mayLog = mayLogOf.get(policy) ?? onceAMinute(now)
      mayLogOf.set(policy, mayLog)
      if (!mayLog()) continue
      const keys = keyOf(describePolicy(policy, keyPrefix), '*')
      log.error({ policy: policy.name, keys, reason }, BROKEN_COUNTER)
    }
  }
}
