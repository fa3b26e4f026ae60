import type { Rule, RuleCondition } from '../../policy.ts'

/** Returns the conditions of a rule. */
export function conditionsOf({ when = [], unless = [] }: Rule): readonly RuleCondition[] {
  return when.length + unless.length === 0 ? none : [...when, ...unless]
}

const none: readonly RuleCondition[] = []

/** Returns the headers that conditions read. The backend gets one line of each and no alias, as for headers that rules count by. */
export function conditionHeaders(rule: Rule): string[] {
  return conditionsOf(rule).flatMap((condition) => {
    if (condition.kind === 'header') return [condition.name]
    if (condition.kind === 'cookie') return ['cookie']
    if (condition.kind === 'userAgent') return ['user-agent']
    return condition.kind === 'jwt' ? ['authorization'] : []
  })
}

/** Returns the token claims that conditions read. */
export function conditionClaims(rule: Rule): string[] {
  return conditionsOf(rule).flatMap((condition) => (condition.kind === 'jwt' ? [condition.name] : []))
}
