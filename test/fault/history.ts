import type { Policy } from '../../proxy/policy.ts'

/** What happened to the requests of one client under one rule. All times are milliseconds of the sender's clock. */
export type History = {
  readonly rule: Pick<Policy, 'quota' | 'windowMs' | 'onStoreError'>
  readonly attempts: readonly Attempt[]
  /** The troubles of all replicas. Troubles of one replica do not overlap. */
  readonly troubles: readonly Trouble[]
  readonly losses: readonly Loss[]
  /** The count that the store reports for the current window, read after all troubles. Undefined if the window may have ended by then. */
  readonly counted?: number
}

/** One request, as its sender saw it. */
export type Attempt = {
  readonly replica: number
  readonly sentMs: number
  readonly answeredMs: number
  /**
   * `passed`: let through uncounted, because of `onStoreError: open`. `refused-elsewhere`: refused by another rule, so no rule may count
   * it.
   */
  readonly outcome: 'allowed' | 'refused' | 'passed' | 'unavailable' | 'refused-elsewhere'
  /** False if the replica answered in the same turn of its event loop, before it could tell the store anything. */
  readonly asked: boolean
}

/** A time in which a replica and the store could not rely on each other. */
export type Trouble = {
  readonly replica: number
  readonly fromMs: number
  /** When the store had answered the replica again, and had received what the replica admitted in the meantime. */
  readonly untilMs: number
}

/**
 * The store lost counts. Whatever it counted between `fromMs` and `untilMs` may be gone: everything so far, after a restart without
 * persistence; writes not yet replicated, after a failover.
 */
export type Loss = { readonly fromMs: number; readonly untilMs: number }
