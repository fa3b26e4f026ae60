import type { Policy } from '../../../policy.ts'
import type { Charge, Decision } from '../../limiter.ts'

/**
 * Decides while the store is unavailable, by each policy's `onStoreError`. A single `closed` makes the request
 * unavailable. Otherwise `local` policies decide with counters in this process, and `open` ones are skipped and have no
 * state.
 *
 * @param uncertain whether the store may have counted the request
 * @param decideLocally decides for the charges given, one or more
 */
export function decideWithoutStore(
  charges: readonly Charge[],
  uncertain: boolean,
  decideLocally: (charges: readonly Charge[]) => Decision,
): Decision {
  if (charges.some(({ policy }) => fallbackOf(policy) === 'closed'))
    return { outcome: 'unavailable', uncertain }
  const local = charges.filter(({ policy }) => fallbackOf(policy) === 'local')
  const decision: Decision = local.length > 0 ? decideLocally(local) : { outcome: 'allowed', states: [] }
  return decision.outcome === 'allowed' ? { ...decision, withoutStore: true } : decision
}

/** Returns how a policy behaves without the store. A shadow policy never refuses, so `closed` means `open` for it. */
export function fallbackOf({
  mode,
  onStoreError,
}: Pick<Policy, 'mode' | 'onStoreError'>): Policy['onStoreError'] {
  return mode === 'shadow' && onStoreError === 'closed' ? 'open' : onStoreError
}
