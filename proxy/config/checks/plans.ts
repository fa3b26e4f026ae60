import type { Rule } from '../../policy.ts'
import type { PlaceOfRule } from './table.ts'

/** Warns of plans that clients do better without: whoever leaves out the token that names the plan has more. */
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
