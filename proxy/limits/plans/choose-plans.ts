import type { Policy } from '../../policy.ts'
import { hasPlan, readsStoredPlan } from '../../policy/plans.ts'
import { withPlan } from '../algorithms/registry.ts'
import type { ReadClaims } from '../keys/tokens/token-reader.ts'
import type { Charge, Decision } from '../limiter.ts'

/** Called for each applying policy with plans. `plan` is the plan's name, `none`, or `unknown` for a plan that the policy does not list. */
type OnPlan = { onPlan(policy: Policy, plan: string): void }

/**
 * Returns the policies with the quotas of the request's plans. Overrides of the client are kept. If the request has several tokens, the
 * lowest of their quotas applies, because a backend takes one of them. If it has too many to read, the lowest quota of the policy applies.
 */
export function choosePlans(
  policies: readonly Policy[],
  claims: ReadClaims | undefined,
  context: OnPlan,
): readonly Policy[] {
  if (!policies.some(({ plans }) => plans?.claim !== undefined)) return policies
  return policies.map((policy) => {
    if (policy.plans?.claim === undefined || policy.override !== undefined) return policy
    const plan = planOf(policy, claims)
    context.onPlan(policy, plan)
    return hasPlan(policy, plan) ? withPlan(policy, plan) : policy
  })
}

function planOf(policy: Policy, claims: ReadClaims | undefined): string {
  const { plans } = policy
  if (plans?.claim === undefined || claims === undefined) return 'none'
  const { claim } = plans
  const named =
    claims === 'too-many'
      ? ['none', ...Object.keys(plans.quotas)]
      : claims.map((each) => each.get(claim) ?? 'none')
  const known = named.map((name) => (name === 'none' || hasPlan(policy, name) ? name : 'unknown'))
  return known.reduce((lowest, name) => (quotaOf(policy, name) < quotaOf(policy, lowest) ? name : lowest))
}

function quotaOf(policy: Policy, plan: string): number {
  return hasPlan(policy, plan) ? (policy.plans?.quotas[plan] ?? policy.quota) : policy.quota
}

/** Records the plans that the store has read: from now on the request's charges have the policies of these plans. */
export function recordPlans(context: OnPlan & { charges: readonly Charge[] }, decision: Decision): Decision {
  if (decision.outcome === 'unavailable' || decision.states.length !== context.charges.length) return decision
  const { states } = decision
  const { charges } = context
  context.charges = charges.map((charge, at) => {
    const state = states[at]
    if (!state || !readsStoredPlan(charge.policy)) return charge
    const { plan } = state.policy
    if (charges[at - 1]?.policy !== charge.policy)
      context.onPlan(charge.policy, plan ?? (state.isPlanUnknown ? 'unknown' : 'none'))
    return plan === undefined ? charge : { ...charge, policy: state.policy }
  })
  return decision
}
