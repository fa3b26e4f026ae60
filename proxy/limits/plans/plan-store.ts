/**
 * - `absent`: there was no plan to remove.
 * - `full`: the maximum number of plans is stored.
 * - `unavailable`: the store does not answer. Nothing was changed.
 * - `uncertain`: the store was asked but did not confirm. It is safe to repeat the change.
 */
export type PlanOutcome = 'done' | 'absent' | 'full' | 'unavailable' | 'uncertain'

/** The client that has a plan, under rules that count by this key. `keyName` comes from `planKeyName`. */
export type PlanOwner = { readonly partitionKey: string; readonly keyName: string }

/**
 * The plans that were set for clients. They are stored with the counters, so that a change applies to the next request in every process. No
 * method rejects.
 */
export type PlanStore = {
  /** The client's plan, whether or not a rule lists it; without `plan` if the client has no plan. */
  get(owner: PlanOwner): Promise<StoredPlan | 'unavailable'>
  /** @param plan undefined removes the plan; the outcome `absent` then means that there was no plan */
  set(owner: PlanOwner, plan: string | undefined): Promise<PlanOutcome>
  /** Lists clients with a plan. `isAll`: the list is complete. */
  list(limit: number): Promise<PlanList | 'unavailable'>
}

/** `key` is the Redis key in which the application may set the plan itself; undefined in memory. */
export type StoredPlan = { readonly plan?: string; readonly key?: string }

export type PlanList = {
  readonly plans: readonly (PlanOwner & { readonly plan: string })[]
  readonly isAll: boolean
}

/** Stands in a store's answer for a plan that the policy does not list. If the client has no plan, the name is empty. */
export const UNKNOWN_PLAN = '?'

/** The store of a process that keeps no plans. Operators have to ask another process. */
export const noPlans: PlanStore = {
  get: () => Promise.resolve('unavailable'),
  set: () => Promise.resolve('unavailable'),
  list: () => Promise.resolve('unavailable'),
}
