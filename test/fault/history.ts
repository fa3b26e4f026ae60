import type { Policy } from '../../proxy/policy.ts'

/**
 * What happened to the requests of one client under one rule. All times are milliseconds of one clock, that of whoever
 * sends.
 */
export type History = {
  readonly rule: Pick<Policy, 'quota' | 'windowMs' | 'onStoreError'>
  readonly attempts: readonly Attempt[]
  /** The troubles of all replicas; those of one do not overlap. */
  readonly troubles: readonly Trouble[]
  readonly losses: readonly Loss[]
  /**
   * What the store says was counted in the running window, read after all troubles. Left out where the window may have
   * ended by then.
   */
  readonly counted?: number
}

/** One request, as its sender saw it. */
export type Attempt = {
  readonly replica: number
  readonly sentMs: number
  readonly answeredMs: number
  /**
   * `passed`: let through uncounted, as `onStoreError: open` has it. `refused-elsewhere`: another rule refused it, so it
   * must be counted nowhere.
   */
  readonly outcome: 'allowed' | 'refused' | 'passed' | 'unavailable' | 'refused-elsewhere'
  /** False where the replica answered in the same turn of its event loop: then it has told the store nothing. */
  readonly asked: boolean
}

/** A time in which a replica and the store could not rely on each other. */
export type Trouble = {
  readonly replica: number
  readonly fromMs: number
  /** When the replica had heard from the store again, and had told it what it had admitted in the meantime. */
  readonly untilMs: number
}

/**
 * The store forgot. What it counted after `fromMs` and before `untilMs` may be gone: everything since ever in a restart
 * without persistence, writes not replicated in a failover.
 */
export type Loss = { readonly fromMs: number; readonly untilMs: number }
