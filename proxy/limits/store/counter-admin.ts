import type { Policy } from '../../policy.ts'
import type { CounterReading } from '../algorithms/memory-counts.ts'
import type { Charge } from '../limiter.ts'
import type { PlanStore } from '../plans/plan-store.ts'

/**
 * The state of one client under one policy.
 * - `store`: from the counters that decide, in Redis or embedded.
 * - `local`: from this process's own counters, which decide while Redis is unavailable, or from its cache of clients that it refuses
 *   without asking Redis.
 * - `none`: Redis is unavailable, and the policy does not count meanwhile.
 */
export type CounterState = {
  readonly policy: Policy
  readonly source: 'store' | 'local' | 'none'
  /** Requests counted: 0 if there is no window, undefined if `source` is `none`. Can be more than the quota. */
  readonly used: number | undefined
  /** Milliseconds until more units are available; undefined if nothing is counted. */
  readonly resetMs: number | undefined
}

/**
 * - `done`: the counters are gone, and every replica drops within a second what it has cached about them.
 * - `unavailable`: the store does not answer. Nothing was reset.
 * - `uncertain`: the store was asked but has not confirmed the whole reset. Repeat the reset; that does no harm.
 */
export type ResetOutcome = 'done' | 'unavailable' | 'uncertain'

/** Inspects and resets counters for operators. No method throws or rejects. */
export type CounterAdmin = {
  /** Reads counters; counts nothing. */
  inspect(charges: readonly Charge[]): Promise<CounterState[]>
  /** Resets a client's counters, on all replicas. */
  reset(charges: readonly Charge[]): Promise<ResetOutcome>
  /** The plans that were set for clients. */
  readonly plans: PlanStore
  /**
   * Forgets what this process has cached about a client, under one policy or under all, after a reset of its shared
   * counters.
   */
  forget(policyName: string | undefined, partitionKey: string): void
}

/** Converts a reading to a state. Without a reading, nothing is used. */
export function toState(
  policy: Policy,
  source: CounterState['source'],
  reading: CounterReading,
): CounterState {
  return { policy, source, used: reading?.used ?? 0, resetMs: reading?.resetMs }
}
