/** What the limits table says of one rule, apart from which requests it matches. */
export type Policy = {
  /** Unique; appears in response fields, metrics and Redis keys. */
  readonly name: string
  /** Requests a client may make in one window. */
  readonly quota: number
  readonly windowMs: number
  /**
   * `fixed`: a window begins with a client's first request and ends after its length. `sliding`: never more than the
   * quota in any span of the window's length; a request counts until exactly that long after it.
   */
  readonly algorithm: 'fixed' | 'sliding'
  /** `shadow` counts and reports but never refuses. */
  readonly mode: 'enforce' | 'shadow'
  /** What happens to the rule's requests while the store does not answer. */
  readonly onStoreError: 'local' | 'open' | 'closed'
  /** What makes a client: the parts of its partition key, in order. Never empty. */
  readonly partition: readonly PartitionPart[]
}

/**
 * The most requests that a sliding window can allow: each is remembered by its time for as long as it is in the window,
 * and one client can have as many as the quota.
 */
export const LARGEST_SLIDING_QUOTA = 100_000

/** `header` names are lower-case. */
export type PartitionPart = { readonly kind: 'ip' } | { readonly kind: 'header'; readonly name: string }

/** A rule of the limits table: a policy and the requests that it matches. */
export type Rule = {
  readonly policy: Policy
  readonly match: readonly RoutePattern[]
  readonly except: readonly RoutePattern[]
}

/**
 * `methods` is empty for `*`, else upper-case. `path` is the pattern as written: literal segments, `:name` for one
 * segment, a final `*` for the rest.
 */
export type RoutePattern = { readonly methods: readonly string[]; readonly path: string }
