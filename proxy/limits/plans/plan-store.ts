/**
 * - `absent`: there was no plan to remove.
 * - `full`: no more plans are kept.
 * - `unavailable`: the store does not answer. Nothing was changed.
 * - `uncertain`: the store was asked and has not confirmed. To be repeated; it can be.
 */
export type PlanOutcome = 'done' | 'absent' | 'full' | 'unavailable' | 'uncertain'

/** The client that has a plan, under rules that count by this key. `keyName` comes from `planKeyName`. */
export type PlanOwner = { readonly partitionKey: string; readonly keyName: string }

/**
 * The plans that were set for clients: where the counters are, so that a change holds for the next request of all processes. None of these
 * rejects.
 */
export type PlanStore = {
  /** The name of the client's plan, whether a rule has it or not; undefined without one. */
  get(owner: PlanOwner): Promise<StoredPlan | 'unavailable'>
  /** @param plan undefined removes it: then `absent` means that there was none */
  set(owner: PlanOwner, plan: string | undefined): Promise<PlanOutcome>
  /** Lists clients with a plan. `isAll`: there are no others. */
  list(limit: number): Promise<PlanList | 'unavailable'>
}

/** `key` is where the application may write it itself; undefined in memory. */
export type StoredPlan = { readonly plan?: string; readonly key?: string }

export type PlanList = {
  readonly plans: readonly (PlanOwner & { readonly plan: string })[]
  readonly isAll: boolean
}

/** Stands in a store's answer for a plan that the policy does not have. Without a plan, the name is empty. */
export const UNKNOWN_PLAN = '?'

/** The store of a process that keeps no plans: operators ask another one. */
export const noPlans: PlanStore = {
  get: () => Promise.resolve('unavailable'),
  set: () => Promise.resolve('unavailable'),
  list: () => Promise.resolve('unavailable'),
}
