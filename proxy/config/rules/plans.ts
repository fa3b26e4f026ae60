import { z } from 'zod'
import type { Kind } from '../../../shared/settings/table.ts'
import { OTHER_PLANS, type Plans } from '../../policy/plans.ts'

/** Maximum number of plans of a rule. Plans become labels of a metric. */
const MAX_PLANS = 100
const needsPlans = `needs a mapping of 1 to ${MAX_PLANS} plans to their number of requests, such as { free: 100, pro: 10000 }`
const planName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const others: ReadonlySet<string> = new Set(OTHER_PLANS)

/** `plans` of a rule: a number of requests for each name. */
export function plansOf(requests: Kind<number>) {
  return z
    .record(z.string(), requests.schema, needsPlans)
    .refine((plans) => {
      const { length } = Object.keys(plans)
      return length > 0 && length <= MAX_PLANS
    }, needsPlans)
    .superRefine((plans, context) => {
      for (const name of Object.keys(plans)) {
        const message = mistakeInName(name)
        if (message !== undefined) context.addIssue({ code: 'custom', message, input: plans })
      }
    })
}

function mistakeInName(name: string): string | undefined {
  if (others.has(name))
    return `has a plan called ${name}, a name that metrics use for clients without a plan of the rule`
  return planName.test(name)
    ? undefined
    : 'needs names of plans of 1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or a digit'
}

const needsPlan =
  'needs jwt:CLAIM, the claim of a verified token that names the plan, or store, for the plan that was set for the client'

/** `plan` of a rule. */
export const planSourceKind = z.string(needsPlan).regex(/^(?:jwt:[^\s]{1,200}|store)$/, needsPlan)

type Written = {
  readonly plan?: string | undefined
  readonly plans?: Readonly<Record<string, number>> | undefined
}

/** Finds a `plan` without `plans`, or the reverse. */
export function findPlanMistakes({ plan, plans }: Written): { field: keyof Written; message: string }[] {
  if (plan !== undefined && plans === undefined)
    return [{ field: 'plan', message: 'needs plans, such as plans: { free: 100, pro: 10000 }' }]
  if (plans !== undefined && plan === undefined)
    return [
      {
        field: 'plans',
        message: 'needs plan: jwt:CLAIM, the claim that names the plan of a client, or plan: store',
      },
    ]
  return []
}

/** Returns undefined for a rule without plans. */
export function toPlans({ plan, plans }: Written): Plans | undefined {
  if (plan === undefined || plans === undefined) return undefined
  return plan === 'store' ? { quotas: plans } : { claim: plan.slice('jwt:'.length), quotas: plans }
}
