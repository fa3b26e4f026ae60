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
  /** Pieces that some backend may take of the certain text, which is a list or has parameters. Each must begin with a prefix, or contain a part. */
  readonly parts?: () => readonly string[]
  /** Texts that some backend may read, in lower case, each in all its forms; undefined: any. */
  possible(): readonly string[] | undefined
  /** The same to look for a beginning or a part in, where that needs fewer. */
  possibleTexts?(): readonly string[] | undefined
}

export const absent: Readings = { absence: YES, certain: [], possible: () => [] }

/** More than can be told: any text, or none. */
export const anything: Readings = { absence: MAYBE, certain: [], possible: () => undefined }
