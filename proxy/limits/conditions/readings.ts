/**
 * Whether a condition holds: for no backend, for some, or for every backend, as they read requests differently.
 *
 * A client gains by a rule that does not apply. So `when` is met by `MAYBE`, and `unless` only by `YES`.
 */
export type Certainty = typeof NO | typeof MAYBE | typeof YES

export const NO = 0
export const MAYBE = 1
export const YES = 2

/** What backends may read by one name, of a request. */
export type Readings = {
  /** Whether there is nothing. */
  readonly absence: Certainty
  /** Texts as sent that every backend reads, all of them; empty where that is uncertain. */
  readonly certain: readonly string[]
  /** Some backend may take a certain text for a list, separated by commas. */
  readonly isList?: boolean
  /** Texts that some backend may read, in lower case; undefined: any. */
  possible(): readonly string[] | undefined
}

export const absent: Readings = { absence: YES, certain: [], possible: () => [] }

/** More than can be told: any text, or none. */
export const anything: Readings = { absence: MAYBE, certain: [], possible: () => undefined }
