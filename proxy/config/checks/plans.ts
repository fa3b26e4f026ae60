import type { Rule } from '../../policy.ts'
import type { PlaceOfRule } from './table.ts'

/** Warns of plans with a lower quota than the rule: a client gets more by leaving out the token that names the plan. */
export function warnOfLowPlans(rules: readonly Rule[], placeOf: PlaceOfRule): string[] {
  return [...rules.entries()].flatMap(([index, { policy }]) =>
    Object.entries(policy.plans?.claim === undefined ? {} : policy.plans.quotas)
      .filter(([, quota]) => quota < policy.quota)
      .map(
        ([name, quota]) =>
          `${placeOf(index, 'plans').label}: plan ${name} allows ${quota}, less than ${policy.quota} (requests) without a plan`,
      ),
  )
}
