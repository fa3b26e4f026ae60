/**
 * The values that backends may read for a name in a request. Backends differ, so a condition on the name holds for no backend, for some, or
 * for all. Each answer is computed on demand, because most conditions need few of them.
 *
 * A client gains if a rule does not apply. A condition of `when` is therefore met if it holds for at least one backend, and a condition of
 * `unless` only if it holds for all.
 */
export type Readings = {
  /** Whether no backend finds the name. */
  isAbsent(): boolean
  /** Whether every backend finds a value. */
  isPresent(): boolean
  /** A text that some backend reads, as sent or in lower case; undefined if it would have to be decoded. */
  likely(isLower: boolean): string | undefined
  /** Whether the text that every backend reads, as sent, passes the test. */
  certainly(isSame: (text: string) => boolean): boolean
  /**
   * The pieces that some backend may read from the text as sent, if it is a list or has parameters. Every piece must pass the test of
   * `prefix` or `contains`. If the wanted text has a semicolon, values are not split at semicolons.
   */
  parts?(wanted: string): readonly string[]
  /** The texts that some backend may read, in lower case, each in all its forms; undefined: any text. */
  possible(): readonly string[] | undefined
  /** The same for the tests `prefix` and `contains`, if these need fewer texts. */
  possibleTexts?(): readonly string[] | undefined
  /** Whether no backend reads this word, a text with only one form. False if only decoding could tell. */
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

/** A value that cannot be read: backends may find any text, or nothing. */
export const anything: Readings = { ...absent, isAbsent: () => false, possible: () => undefined }

/** A blank value: some backends treat it as absent, and no backend reads any text in it. */
export const blank: Readings = { ...absent, isAbsent: () => false }
