import type { CalendarUnit, Policy } from '../../policy.ts'

/** The fields of a rule that say how much it allows, as written. `window` is in milliseconds, or a unit of the calendar. */
export type WrittenQuota = {
  readonly requests?: number | undefined
  readonly window?: number | CalendarUnit | undefined
  readonly timezone?: string | undefined
  readonly burst?: number | undefined
  readonly concurrency?: number | undefined
}

/** Fields of a rule that do not go with every algorithm. */
export type OptionalField =
  'requests' | 'window' | 'countStatus' | 'cost' | 'burst' | 'ban' | 'algorithm' | 'lease'

/** The fields that a rule may have under an algorithm, and what they mean. */
export type AlgorithmRule = {
  /** The effect, for the description of the setting `algorithm`. Undefined if a field of its own chooses the algorithm. */
  readonly summary?: string
  /** The field that chooses it, in place of `algorithm`, and that holds the quota. */
  readonly ownField?: 'concurrency'
  /** Whether another field chooses it. */
  isChosen?(written: WrittenQuota): boolean
  /** The largest quota. `when` says in mistakes why it is no larger; undefined if it is that of every rule. */
  readonly maxQuota: number
  readonly when?: string
  /** Why a rule cannot have these fields. */
  readonly excludes: Readonly<Partial<Record<OptionalField, string>>>
  /** Whether the rule may have `burst`. */
  readonly takesBurst: boolean
  /** Another mistake in the quota. */
  findMistake?(
    written: WrittenQuota,
  ): { readonly field: 'requests' | 'window' | 'burst'; readonly message: string } | undefined
  /** What a written quota comes to. */
  toQuota(written: WrittenQuota): Pick<Policy, 'quota' | 'windowMs' | 'calendar' | 'averageWindowMs'>
  /** What else changes in a policy where a client has another quota than the rule. */
  ofOtherQuota?(policy: Policy): Partial<Policy>
  /** Why a valid policy may be more expensive than it seems. */
  warning?(policy: Policy): string | undefined
}

/** `toQuota` of algorithms that count `requests` in each `window`. */
export function countedInWindows({
  requests = 0,
  window,
}: WrittenQuota): ReturnType<AlgorithmRule['toQuota']> {
  return { quota: requests, windowMs: writtenMs(window) }
}

/** The length of a window, unless it is by the calendar. */
export function writtenMs(window: WrittenQuota['window']): number {
  return typeof window === 'number' ? window : 0
}
