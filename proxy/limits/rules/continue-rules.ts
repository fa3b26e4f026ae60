import { isDeepStrictEqual } from 'node:util'
import type { Steps } from '../../../shared/steps.ts'
import type { Override, Policy, Rule } from '../../policy.ts'

/** Tells a policy from all others of its table: the rule's name, and for an override its number. */
function policyKey({ name, override }: Policy): string {
  return override === undefined ? name : `${name}#${override}`
}

/**
 * The rules of a new table, in which policies that have not changed are the same objects as before: the state kept for
 * these, such as clients that are known to be over a limit, stays.
 *
 * @returns also the keys of the policies that are new or changed
 */
export function* continueRules(
  running: readonly Rule[],
  next: readonly Rule[],
): Steps<{ readonly rules: readonly Rule[]; readonly revised: readonly string[] }> {
  const before = yield* policiesByKey(running)
  const revised: string[] = []
  const rules = yield* mapPolicies(next, (policy) => {
    const known = before.get(policyKey(policy))
    if (known && isDeepStrictEqual(known, policy)) return known
    revised.push(policyKey(policy))
    return policy
  })
  return { rules, revised }
}

/**
 * Does the same when another process has determined the revised policies. These get a revision, by which that process tells them from
 * those of requests that have begun before.
 */
export function* reviseRules(
  running: readonly Rule[],
  next: readonly Rule[],
  revised: readonly string[],
  revision: number,
): Steps<readonly Rule[]> {
  const before = yield* policiesByKey(running)
  const isRevised = new Set(revised)
  return yield* mapPolicies(next, (policy) => {
    const known = before.get(policyKey(policy))
    return known && !isRevised.has(policyKey(policy)) ? known : { ...policy, revision }
  })
}

function* policiesByKey(rules: readonly Rule[]): Steps<ReadonlyMap<string, Policy>> {
  const policies = new Map<string, Policy>()
  for (const { policy, overrides = [] } of rules) {
    policies.set(policyKey(policy), policy)
    yield
    for (const override of overrides) {
      policies.set(policyKey(override.policy), override.policy)
      yield
    }
  }
  return policies
}

function* mapPolicies(rules: readonly Rule[], map: (policy: Policy) => Policy): Steps<readonly Rule[]> {
  const mapped: Rule[] = []
  for (const rule of rules) {
    const policy = map(rule.policy)
    yield
    mapped.push({
      ...rule,
      policy,
      ...(rule.overrides && { overrides: yield* mapOverrides(rule.overrides, map) }),
    })
  }
  return mapped
}

function* mapOverrides(
  overrides: readonly Override[],
  map: (policy: Policy) => Policy,
): Steps<readonly Override[]> {
  const mapped: Override[] = []
  for (const override of overrides) {
    mapped.push({ ...override, policy: map(override.policy) })
    yield
  }
  return mapped
}
