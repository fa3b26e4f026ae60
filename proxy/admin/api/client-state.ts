import { toSeconds } from './api-values.ts'
import { describeKey } from './client-name.ts'
import { fallbackOf } from '../../limits/store/outage/store-fallback.ts'
import { requestedUnits, reservedUnits, type Policy } from '../../policy.ts'
import type { ClientState } from '../client-operations.ts'

/**
 * Describes the state of a client. Values are null if they are unknown because Redis is unavailable and the rule does not count locally.
 * Then `onStoreError` decides about requests.
 *
 * @param units the units of the next request
 */
export function describeState(
  state: ClientState,
  partitionKey: string | undefined,
  units = leastUnits(state.policy),
): object {
  const { policy, quota, source, used, resetMs, bannedForMs, overriddenForMs } = state
  const label = state.label ?? policy.label
  return {
    policy: policy.name,
    // The name that lists show for a client with a secret value.
    ...(partitionKey !== undefined && { client: describeKey(partitionKey) }),
    ...(label !== undefined && { label }),
    ...(state.plan !== undefined && { plan: state.plan }),
    limit: quota,
    windowSeconds: policy.windowMs / 1000,
    ...(policy.calendar && { calendar: policy.calendar }),
    mode: policy.mode,
    used: used ?? null,
    remaining: used === undefined ? null : Math.max(0, quota - used),
    exceeded: used === undefined ? null : used + units > quota,
    resetSeconds: resetMs === undefined ? null : toSeconds(resetMs),
    source,
    ...(source === 'none' && { onStoreError: fallbackOf(policy) }),
    ...(bannedForMs !== undefined && { bannedSeconds: toSeconds(bannedForMs) }),
    ...(overriddenForMs !== undefined && { overrideSeconds: toSeconds(overriddenForMs) }),
  }
}

/** Returns the units that a request takes at least. */
function leastUnits(policy: Policy): number {
  return requestedUnits(policy) ? 1 : reservedUnits(policy)
}
