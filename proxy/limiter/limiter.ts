import type { Policy } from '../policy.ts'

/** One request of one client that one rule is asked to allow and count. */
export type Charge = {
  readonly policy: Policy
  /** Identifies the client under the policy. Its parts are unambiguously separated, and secrets are hashed. */
  readonly partitionKey: string
}

/** What a client has left under one policy, after the decision. */
export type PolicyState = {
  readonly policy: Policy
  /** The request was over this policy's quota: it is refused, or would have been (`shadow`). */
  readonly exceeded: boolean
  /** Requests left in the current window, 0 to quota. */
  readonly remaining: number
  /**
   * Milliseconds until more is left, perhaps with a fraction: until a fixed window ends, or until the oldest request
   * that uses up a sliding one leaves it. The whole window where nothing is counted.
   */
  readonly resetMs: number
}

/**
 * The decision for all charges of one request. `states` are in the order of the charges. While the store is
 * unavailable, policies that allow requests without counting have no state.
 *
 * - `allowed`: every charge was counted, except those of an exceeded `shadow` policy. `withoutStore`: they were counted
 *   in this process only, and those without a state not at all.
 * - `refused`: `refusedBy` is the first enforced policy that is over its limit. Nothing was counted.
 * - `unavailable`: the store did not answer, and a policy of the request has `onStoreError: closed`. `uncertain`: the
 *   store may have counted the request; otherwise it has not.
 */
export type Decision =
  | { readonly outcome: 'allowed'; readonly states: readonly PolicyState[]; readonly withoutStore?: true }
  | { readonly outcome: 'refused'; readonly refusedBy: Policy; readonly states: readonly PolicyState[] }
  | { readonly outcome: 'unavailable'; readonly uncertain: boolean }

/** Decides a whole request atomically. Every counter store implements it. */
export type Limiter = {
  /**
   * Decides and counts. Never throws and never rejects: a failure is the value `unavailable`. Returns the decision
   * itself, and no promise, if it is known in this process.
   *
   * @param charges one for each rule of the request, in the table's order; never empty, no policy twice
   */
  decide(charges: readonly Charge[]): Decision | Promise<Decision>
}
