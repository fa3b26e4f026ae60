import { isDeepStrictEqual } from 'node:util'
import type { Policy, Rule } from '../policy.ts'

/** Tells a policy from all others of its table: the rule's name, and for an override its number. */
function policyKey({ name, override }: Policy): string {
  return override === undefined ? name : `${name}#${override}`
}

/**
 * The rules of a new table, in which policies that have not changed are the objects that are in force: what is kept for
 * these, such as clients that are known to be over a limit, stays.
 *
 * @returns also the keys of the policies that are new or changed
 */
export function continueRules(
  running: readonly Rule[],
  next: readonly Rule[],
): { readonly rules: readonly Rule[]; readonly revised: readonly string[] } {
  const before = policiesByKey(running)
  const revised: string[] = []
  const rules = mapPolicies(next, (policy) => {
    const known = before.get(policyKey(policy))
    if (known && isDeepStrictEqual(known, policy)) return known
    revised.push(policyKey(policy))
    return policy
  })
  return { rules, revised }
}

/**
 * The same where another process has found out what is revised. Those policies get a revision, by which that process tells
 * them from those of requests that have begun before.
 */
export function reviseRules(
  running: readonly Rule[],
  next: readonly Rule[],
  revised: readonly string[],
  revision: number,
): readonly Rule[] {
  const before = policiesByKey(running)
  const isRevised = new Set(revised)
  return mapPolicies(next, (policy) => {
    const known = before.get(policyKey(policy))
    return known && !isRevised.has(policyKey(policy)) ? known : { ...policy, revision }
  })
}

function policiesByKey(rules: readonly Rule[]): ReadonlyMap<string, Policy> {
  return new Map(
    rules.flatMap(({ policy, overrides = [] }) =>
      [policy, ...overrides.map((override) => override.policy)].map((each) => [policyKey(each), each]),
    ),
  )
}

function mapPolicies(rules: readonly Rule[], map: (policy: Policy) => Policy): readonly Rule[] {
  return rules.map((rule) => ({
    ...rule,
    policy: map(rule.policy),
    ...(rule.overrides && {
      overrides: rule.overrides.map((override) => ({ ...override, policy: map(override.policy) })),
    }),
  }))
}
