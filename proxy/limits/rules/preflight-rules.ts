import type { Rule } from '../../policy.ts'

/** Returns the rules as they match preflight requests: only with their patterns that name OPTIONS. */
export function preflightRules(rules: readonly Rule[]): Rule[] {
  return rules.flatMap((rule) => {
    const match = rule.match.filter(({ methods }) => methods.includes('OPTIONS'))
    return match.length === 0 ? [] : [{ ...rule, match }]
  })
}
