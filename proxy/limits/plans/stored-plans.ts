import type { Policy } from '../../policy.ts'
import { planKeyName } from './plan-key-name.ts'
import { hasPlan, readsStoredPlan } from '../../policy/plans.ts'
import { withPlan } from '../algorithms/registry.ts'
import type { Charge, Decision, PolicyState } from '../limiter.ts'
import type { PlanOwner, PlanStore } from './plan-store.ts'

/** This many plans take about ten megabytes in the process that counts. */
const MAX_PLANS_IN_MEMORY = 100_000

/** Returns the charge with the quota of a plan that was read from a store. */
export function withStoredPlan(charge: Charge, name: unknown): Charge {
  const { policy } = charge
  return typeof name === 'string' && hasPlan(policy, name)
    ? { ...charge, policy: withPlan(policy, name) }
    : charge
}

/** Whether the plan that was read is not one of the policy's. */
export function isUnknownPlan(policy: Policy, name: unknown): boolean {
  return typeof name === 'string' && name !== '' && !hasPlan(policy, name)
}

/** Plans in this process's memory, which are lost when it ends. */
export type MemoryPlans = PlanStore & {
  /** By client and key; while it is empty, callers can skip `decide`. */
  readonly byClient: ReadonlyMap<string, string>
  /** Decides with the plans of the clients. */
  decide(charges: readonly Charge[], decide: (charges: readonly Charge[]) => Decision): Decision
  /** Returns the charges with the plans of their clients. */
  apply(charges: readonly Charge[]): readonly Charge[]
}

/** @param maxPlans maximum number of plans; setting another one has the outcome `full` */
export function createMemoryPlans(maxPlans = MAX_PLANS_IN_MEMORY): MemoryPlans {
  const plans = new Map<string, string>()
  const nameFor = ({ policy, partitionKey }: Charge): string =>
    readsStoredPlan(policy) ? (plans.get(entryOf({ partitionKey, keyName: planKeyName(policy) })) ?? '') : ''
  const apply = (charges: readonly Charge[]): readonly Charge[] =>
    charges.map((charge) => withStoredPlan(charge, nameFor(charge)))
  return {
    byClient: plans,
    apply,
    decide(charges, decide) {
      const decision = decide(apply(charges))
      if (decision.outcome === 'unavailable') return decision
      const states = decision.states.map((state, at): PolicyState => {
        const charge = charges[at]
        const isUnknown = charge && isUnknownPlan(charge.policy, nameFor(charge))
        return isUnknown ? { ...state, isPlanUnknown: true } : state
      })
      return { ...decision, states }
    },
    get(owner) {
      const plan = plans.get(entryOf(owner))
      return Promise.resolve(plan === undefined ? {} : { plan })
    },
    set(owner, plan) {
      const entry = entryOf(owner)
      if (plan === undefined) return Promise.resolve(plans.delete(entry) ? 'done' : 'absent')
      if (plans.size >= maxPlans && !plans.has(entry)) return Promise.resolve('full')
      plans.set(entry, plan)
      return Promise.resolve('done')
    },
    list(limit) {
      const listed = plans
        .entries()
        .take(limit)
        .map(([entry, plan]) => ({ ...ownerOf(entry), plan }))
      return Promise.resolve({ plans: [...listed], isAll: plans.size <= limit })
    },
  }
}

/** The key of an entry. Partition keys have no blank. */
function entryOf({ partitionKey, keyName }: PlanOwner): string {
  return `${partitionKey} ${keyName}`
}

function ownerOf(entry: string): PlanOwner {
  const blank = entry.indexOf(' ')
  return { partitionKey: entry.slice(0, blank), keyName: entry.slice(blank + 1) }
}
