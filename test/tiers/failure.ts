/** A failure in a test, in a file as a whole (`test` is empty), or outside any file (`file` is also empty). */
export type Failure = {
  readonly project: string
  /** Path from the repository's root. */
  readonly file: string
  /** The full name: the names of its suites, then its own. */
  readonly test: string
  readonly message: string
  readonly kind: FailureKind
}

export type FailureKind = 'exact count' | 'crash' | 'leak' | 'uncaught error' | 'other'

/** An error as vitest reports it. */
export type ReportedError = {
  readonly name?: string | undefined
  readonly message?: string | undefined
  readonly stack?: string | undefined
  readonly expected?: unknown
  readonly actual?: unknown
}

/** The kind of error that a test or a hook threw. */
export function kindOf(error: ReportedError): FailureKind {
  const message = error.message ?? ''
  if (message.startsWith('left open at the end of the file')) return 'leak'
  if (/\bended with (?:70|1(?:29|3[0-9]))\b|SIGSEGV|SIGABRT|heap out of memory|core dumped/.test(message))
    return 'crash'
  return differsInNumbersOnly(error) ? 'exact count' : 'other'
}

/** Whether both sides are numbers, or equal apart from numbers. A missed bound is not an exact count. */
function differsInNumbersOnly({ message, expected, actual }: ReportedError): boolean {
  if (expected === undefined || actual === undefined) return false
  if (/to be (?:less|greater) than|to be close to/.test(message ?? '')) return false
  const [left = '', right = ''] = [expected, actual].map((side) =>
    typeof side === 'string' ? side : JSON.stringify(side),
  )
  const isNumbers = (text: string): boolean => /\d/.test(text) && /^[-\d.\s,[\]]*$/.test(text)
  const withoutNumbers = (text: string): string => text.replace(/\d+(?:\.\d+)?/g, '#')
  return (isNumbers(left) && isNumbers(right)) || withoutNumbers(left) === withoutNumbers(right)
}
