import { maxDelayMs, settlesByResponse, type Policy } from '../../policy.ts'
import { hasBodyKey } from '../../policy/partition.ts'
import type { Algorithm, CountedState } from './algorithm.ts'
import { calendar } from './calendar/calendar.ts'
import { concurrency } from './concurrency/concurrency.ts'
import { fixed } from './fixed/fixed.ts'
import { sliding } from './sliding/sliding.ts'
import { tokenBucket } from './token-bucket/token-bucket.ts'

/** The algorithms, in the order in which settings and documentation name them. */
export const algorithms: readonly Algorithm[] = [fixed, calendar, sliding, tokenBucket, concurrency]

/** The algorithm of a rule that does not name one. */
export const usualAlgorithm: Algorithm = fixed

const byName = new Map(algorithms.map((algorithm) => [algorithm.name, algorithm]))

/** @throws {RangeError} for an unknown name, which the settings never contain */
export function algorithmOf({ algorithm }: Pick<Policy, 'algorithm'>): Algorithm {
  const found = byName.get(algorithm)
  if (!found) throw new RangeError(`no algorithm is called ${algorithm}`)
  return found
}

/** Whether requests count under the policy while they are in flight. */
export function countsInFlight(policy: Pick<Policy, 'algorithm'>): boolean {
  return byName.get(policy.algorithm)?.countsInFlight === true
}

/**
 * Computes the state that a counter would have without units that it has counted; with negative units, the state after these are charged
 * too. The remaining quota may be negative, or more than the whole.
 *
 * @param state with a quota that is not wholly unused
 */
export function stateWithout(policy: Policy, units: number, state: CountedState): CountedState {
  return (
    algorithmOf(policy).stateWithout?.(policy, units, state) ?? {
      remaining: state.remaining + units,
      resetMs: state.resetMs,
    }
  )
}

/** Whether rules with the algorithm may have `lease`, so that a unit may be used later in its window than it was counted. */
export function lendsUnits({ rule }: Algorithm): boolean {
  return rule.excludes.lease === undefined
}

/**
 * Whether requests under the policy reserve units that are settled later, because the response decides the cost, because only requests in
 * flight count, or because a delayed request may leave before its turn.
 */
export function isReserved(policy: Policy): boolean {
  return settlesByResponse(policy) || countsInFlight(policy) || maxDelayMs(policy) > 0
}

/** Whether each charge states its units, because they are not always one under the policy or are settled later. */
export function takesUnits(policy: Policy): boolean {
  return (
    algorithmOf(policy).takesUnits ||
    settlesByResponse(policy) ||
    policy.cost !== undefined ||
    hasBodyKey(policy)
  )
}

/** The policies of clients whose quota differs from the rule's, by plan (a text) or by quota (a number). */
const variants = new WeakMap<Policy, Map<string | number, Policy>>()

/** Returns the policy for clients with this plan. It is the same object each time, because counters are looked up by it. */
export function withPlan(policy: Policy, plan: string): Policy {
  const known = variants.get(policy)?.get(plan)
  return known ?? addVariant(policy, plan, { quota: policy.plans?.quotas[plan] ?? policy.quota, plan })
}

/**
 * Returns the policy for a client that was given another quota at run time. It is the same object each time, because counters are
 * looked up by it.
 */
export function withQuota(policy: Policy, quota: number): Policy {
  const known = variants.get(policy)?.get(quota)
  return known ?? addVariant(policy, quota, { quota, isSetAtRunTime: true })
}

function addVariant(policy: Policy, key: string | number, changed: Partial<Policy>): Policy {
  const variant = { ...policy, ...changed, ...algorithmOf(policy).rule.ofOtherQuota?.(policy) }
  const known = variants.get(policy)
  if (known) known.set(key, variant)
  else variants.set(policy, new Map([[key, variant]]))
  return variant
}
