import type { Policy } from '../../policy.ts'
import { withPlan } from '../algorithms/registry.ts'
import type { ReadClaims } from '../keys/tokens/token-reader.ts'

/** Called for each policy with plans that applies: the name of the plan, `none`, or `unknown` for one that the policy does not have. */
type OnPlan = { onPlan?(policy: Policy, plan: string): void }

/**
 * The policies with the quotas of the request's plans. An override for the client stays. Of several tokens the one with the lowest quota
 * counts, as a backend takes one of them; with too many to read, the lowest quota of the policy does.
 */
export function choosePlans(
  policies: readonly Policy[],
  claims: ReadClaims | undefined,
  asked: OnPlan,
): readonly Policy[] {
  if (!policies.some(({ plans }) => plans)) return policies
  return policies.map((policy) => {
    if (!policy.plans || policy.override !== undefined) return policy
    const plan = planOf(policy, claims)
    asked.onPlan?.(policy, plan)
    return hasPlan(policy, plan) ? withPlan(policy, plan) : policy
  })
}

function planOf(policy: Policy, claims: ReadClaims | undefined): string {
  const { plans } = policy
  if (!plans || claims === undefined) return 'none'
  const named =
    claims === 'too-many'
      ? ['none', ...Object.keys(plans.quotas)]
      : claims.map((each) => each.get(plans.claim) ?? 'none')
  const known = named.map((name) => (name === 'none' || hasPlan(policy, name) ? name : 'unknown'))
  return known.reduce((least, name) => (quotaOf(policy, name) < quotaOf(policy, least) ? name : least))
}

function quotaOf(policy: Policy, plan: string): number {
  return hasPlan(policy, plan) ? (policy.plans?.quotas[plan] ?? policy.quota) : policy.quota
}

/** Names are what tokens say: a plan may be called as something that every object has. */
function hasPlan({ plans }: Policy, name: string): boolean {
  return plans !== undefined && Object.hasOwn(plans.quotas, name)
}
