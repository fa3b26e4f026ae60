/** The quotas of a rule for clients by their plan. Clients without one, or with a plan of another name, have the rule's own quota. */
export type Plans = {
  /** The claim of a verified token that names the plan; undefined if the plan is read with the client's counters. */
  readonly claim?: string
  /** By plan name. */
  readonly quotas: Readonly<Record<string, number>>
}

/** Names that plans cannot have, as metrics have them: for clients without a plan, and with one that the rule does not have. */
export const OTHER_PLANS = ['none', 'unknown'] as const

/** Whether a policy has a plan of this name. A token can name a plan like something that every object has. */
export function hasPlan({ plans }: { readonly plans?: Plans }, name: string): boolean {
  return plans !== undefined && Object.hasOwn(plans.quotas, name)
}

/** The source of a client's plan, in the syntax of the limits table. */
export function planSource({ claim }: Plans): string {
  return claim === undefined ? 'store' : `jwt:${claim}`
}

/**
 * Whether the plan of a client under the policy is read where it is counted: no override has chosen its quota, and no plan is chosen yet.
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
