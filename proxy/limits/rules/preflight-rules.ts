import type { Rule } from '../../policy.ts'

/** The rules as they match preflights: only by the patterns that name OPTIONS. */
export function preflightRules(rules: readonly Rule[]): Rule[] {
  return rules.flatMap((rule) => {
    const match = rule.match.filter(({ methods }) => methods.includes('OPTIONS'))
    return match.length === 0 ? [] : [{ ...rule, match }]
  })
}
