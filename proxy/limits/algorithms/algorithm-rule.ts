import type { CalendarUnit, Policy } from '../../policy.ts'

/** The fields of a rule that say how much it allows, as written. `window` is in milliseconds, or a unit of the calendar. */
export type WrittenQuota = {
  readonly requests?: number | undefined
  readonly window?: number | CalendarUnit | undefined
  readonly timezone?: string | undefined
  readonly burst?: number | undefined
  readonly concurrency?: number | undefined
}

/** Fields of a rule that some algorithms exclude. */
export type OptionalField =
  | 'requests'
  | 'window'
  | 'countStatus'
  | 'cost'
  | 'burst'
  | 'ban'
  | 'algorithm'
  | 'lease'

/** The fields that a rule may have under an algorithm, and what they mean. */
export type AlgorithmRule = {
  /** The effect, for the description of the setting `algorithm`; undefined if a field of its own chooses the algorithm. */
  readonly summary?: string
  /** The field that chooses the algorithm, in place of `algorithm`, and that holds the quota. */
  readonly ownField?: 'concurrency'
  /** Whether another field chooses the algorithm. */
  isChosen?(written: WrittenQuota): boolean
  /**
   * The maximum quota. `when` is the reason in the message about a larger quota; undefined if the maximum is the same for every rule.
   */
  readonly maxQuota: number
  readonly when?: string
  /** For each excluded field, the reason why a rule cannot have it. */
  readonly excludes: Readonly<Partial<Record<OptionalField, string>>>
  /** Whether the rule may have `burst`. */
  readonly takesBurst: boolean
  /** Finds a mistake in the quota that the other members do not describe. */
  findMistake?(
    written: WrittenQuota,
  ): { readonly field: 'requests' | 'window' | 'burst'; readonly message: string } | undefined
  /** Converts a written quota to the fields of a policy. */
  toQuota(written: WrittenQuota): Pick<Policy, 'quota' | 'windowMs' | 'calendar' | 'averageWindowMs'>
  /** Returns the further fields that change in the policy of a client whose quota differs from the rule's. */
  ofOtherQuota?(policy: Policy): Partial<Policy>
  /** Returns why a valid policy may be more expensive than it seems. */
  warning?(policy: Policy): string | undefined
}

/** Implements `toQuota` for algorithms that count `requests` in each `window`. */
export function countedInWindows({
  requests = 0,
  window,
}: WrittenQuota): ReturnType<AlgorithmRule['toQuota']> {
  return { quota: requests, windowMs: writtenMs(window) }
}

/** Returns the length of a window in milliseconds; 0 for a calendar window. */
export function writtenMs(window: WrittenQuota['window']): number {
  return typeof window === 'number' ? window : 0
}
