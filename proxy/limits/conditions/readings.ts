/**
 * What backends may read by one name in a request: they differ, so a condition on it holds for no backend, for some, or for every one.
 * Each answer is computed when it is asked for, as most conditions need few of them.
 *
 * A client gains by a rule that does not apply. So a condition of `when` is met if it holds for some backend, and one of `unless` only if
 * it holds for every one.
 */
export type Readings = {
  /** Whether no backend finds anything. */
  isAbsent(): boolean
  /** Whether every backend finds something. */
  isPresent(): boolean
  /** A text that some backend reads, as sent or in lower case, where that takes no decoding. */
  likely(isLower: boolean): string | undefined
  /** Whether the text that every backend reads, as sent, passes the test. */
  certainly(isSame: (text: string) => boolean): boolean
  /**
   * Pieces that some backend may take of the text as sent, which is a list or has parameters: each must begin with a prefix, or contain a
   * part. If the wanted text has a semicolon, values are not split at semicolons.
   */
  parts?(wanted: string): readonly string[]
  /** Texts that some backend may read, in lower case, each in all its forms; undefined: any. */
  possible(): readonly string[] | undefined
  /** The same to look for a beginning or a part in, where that needs fewer. */
  possibleTexts?(): readonly string[] | undefined
  /** Whether no backend reads a text that has this one as its only form, where that takes no decoding. */
  lacksWord?(word: string): boolean
}

const none: readonly string[] = []

export const absent: Readings = {
  isAbsent: () => true,
  isPresent: () => false,
  likely: () => undefined,
  certainly: () => false,
  possible: () => none,
}

/** A value that cannot be read: any text, or absent. */
export const anything: Readings = { ...absent, isAbsent: () => false, possible: () => undefined }

/** A blank value: some backends take it for absent, and none reads any text in it. */
export const blank: Readings = { ...absent, isAbsent: () => false }
