/** The quotas of a rule by the client's plan. Clients without a plan, or with one that is not listed, have the rule's own quota. */
export type Plans = {
  /** The claim of a verified token that names the plan; undefined if the plan is stored with the client's counters. */
  readonly claim?: string
  /** By plan name. */
  readonly quotas: Readonly<Record<string, number>>
}

/** Names that plans cannot have, because metrics use them for clients without a plan and for clients whose plan the rule does not list. */
export const OTHER_PLANS = ['none', 'unknown'] as const

/** Whether a policy has a plan of this name. The name may come from a token, and may be that of an inherited property of objects. */
export function hasPlan({ plans }: { readonly plans?: Plans }, name: string): boolean {
  return plans !== undefined && Object.hasOwn(plans.quotas, name)
}

/** The source of a client's plan, in the syntax of the limits table. */
export function planSource({ claim }: Plans): string {
  return claim === undefined ? 'store' : `jwt:${claim}`
}

/** The largest quota that a client may have under the policy, if the store is yet to read the client's plan; otherwise the quota. */
export function largestQuota(
  policy: { readonly quota: number } & Parameters<typeof readsStoredPlan>[0],
): number {
  const { quota, plans } = policy
  return plans && readsStoredPlan(policy) ? Math.max(quota, ...Object.values(plans.quotas)) : quota
}

/**
 * Whether the store reads the client's plan while it counts: the policy's plans are stored ones, no override sets the quota, and no plan is
 * chosen yet.
 */
export function readsStoredPlan(policy: {
  readonly plans?: Plans
  readonly plan?: string
  readonly override?: number
  readonly isSetAtRunTime?: boolean
}): boolean {
  const { plans, plan, override, isSetAtRunTime } = policy
  return (
    plans !== undefined &&
    plans.claim === undefined &&
    plan === undefined &&
    override === undefined &&
    isSetAtRunTime === undefined
  )
}
