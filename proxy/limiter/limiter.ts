import type { Policy } from '../policy.ts'

/** One rule's question about one request: may this client have one more under this policy? */
export type Charge = {
  readonly policy: Policy
  /** Names the client under the policy. Parts cannot run together, and secrets appear in it only hashed. */
  readonly partitionKey: string
}

/** What is left to a client under one policy, after the decision. */
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
 * The answer for all charges of one request. `states` follow the order of the charges. While the store is away, the
 * states of policies that let pass without counting are missing; it can be all of them.
 *
 * - `allowed`: every charge was counted, but those of an exceeded `shadow` policy; `withoutStore`: by this process alone,
 *   those without a state not at all.
 * - `refused`: `refusedBy` is the first enforced policy that is exhausted; nothing was counted anywhere.
 * - `unavailable`: the store did not answer, and a policy of the request says that this closes. Whether the store
 *   counted is unknown when `uncertain`, else it did not.
 */
export type Decision =
  | { readonly outcome: 'allowed'; readonly states: readonly PolicyState[]; readonly withoutStore?: true }
  | { readonly outcome: 'refused'; readonly refusedBy: Policy; readonly states: readonly PolicyState[] }
  | { readonly outcome: 'unavailable'; readonly uncertain: boolean }

/** Decides for a whole request, atomically. The one thing that every counter store does. */
export type Limiter = {
  /**
   * Decides and counts. Never throws and never rejects: a failure is the value `unavailable`. Answers at once, without
   * a promise, where the answer is known in this process.
   *
   * @param charges one for each rule of the request, in the table's order; never empty, no policy twice
   */
  decide(charges: readonly Charge[]): Decision | Promise<Decision>
}
