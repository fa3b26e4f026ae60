import { isDeepStrictEqual } from 'node:util'
import type { Steps } from '../../../shared/steps.ts'
import type { Override, Policy, Rule } from '../../policy.ts'

/** Returns a key that is unique in the policy's table: the rule's name, and for an override also its number. */
function policyKey({ name, override }: Policy): string {
  return override === undefined ? name : `${name}#${override}`
}

/**
 * Returns the rules of a new table, in which unchanged policies are the same objects as before. State that is kept by policy,
 * such as the clients known to be over a limit, therefore survives.
 *
 * @returns the rules, and as `revised` the keys of the policies that are new or changed
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
 * Does what `continueRules` does when another process has determined the revised policies. These policies get a revision, by which that
 * process distinguishes them from the policies of requests that began earlier.
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
