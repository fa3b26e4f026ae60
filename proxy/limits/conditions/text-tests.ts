import type { TextTest } from '../../policy/conditions.ts'
import { MAYBE, NO, YES, type Certainty, type Readings } from './readings.ts'

/** How the texts of a kind of condition are compared. */
export type Comparison = {
  /** Every spelling, in lower case, that `possible` has for a text. */
  formsOf(text: string): readonly string[]
  /** The one in which the beginning or a part of a text is looked for, in lower case. */
  partOf(text: string): string
  /** Letter case makes no difference to anybody, and nobody takes a text for a list. */
  readonly ignoresCase: boolean
}

/** Compiles the tests of a condition; it holds if any of them does. */
export function compileTests(
  tests: readonly TextTest[],
  comparison: Comparison,
): (readings: Readings) => Certainty {
  const compiled = tests.map((test) => compileTest(test, comparison))
  const [only] = compiled
  if (only && compiled.length === 1) return only
  return (readings) => {
    let best: Certainty = NO
    for (const test of compiled) {
      const certainty = test(readings)
      if (certainty === YES) return YES
      if (certainty > best) best = certainty
    }
    return best
  }
}

function compileTest(test: TextTest, comparison: Comparison): (readings: Readings) => Certainty {
  switch (test.kind) {
    case 'absent':
      return ({ absence }) => absence
    case 'present':
      return ({ absence }) => (absence === YES ? NO : absence === NO ? YES : MAYBE)
    case 'is': {
      const sent = bytesOf(test.text)
      const forms = new Set(comparison.formsOf(sent))
      return compileComparison(sent, comparison, {
        isSame: (text, wanted) => text === wanted,
        isPossible: (text) => forms.has(text),
        takesLists: true,
      })
    }
    case 'prefix': {
      const sent = bytesOf(test.text)
      const part = comparison.partOf(sent)
      return compileComparison(sent, comparison, {
        isSame: (text, wanted) => text.startsWith(wanted),
        isPossible: (text) => hasWord(text, part),
        takesLists: false,
      })
    }
    case 'contains': {
      const sent = bytesOf(test.text)
      const part = comparison.partOf(sent)
      return compileComparison(sent, comparison, {
        isSame: (text, wanted) => text.includes(wanted),
        isPossible: (text) => text.includes(part),
        takesLists: false,
      })
    }
  }
}

function compileComparison(
  sent: string,
  { ignoresCase }: Comparison,
  how: {
    readonly isSame: (text: string, wanted: string) => boolean
    readonly isPossible: (text: string) => boolean
    /** A text that may be read as a list is compared as a whole. */
    readonly takesLists: boolean
  },
): (readings: Readings) => Certainty {
  const wanted = ignoresCase ? sent.toLowerCase() : sent
  const arePartsSame = ({ parts }: Readings): boolean =>
    parts?.().every((part) => how.isSame(part, wanted)) ?? true
  return (readings) => {
    if (readings.absence === YES) return NO
    const certain = readings.certain.some((text) =>
      how.isSame(ignoresCase ? text.toLowerCase() : text, wanted),
    )
    if (certain && (how.takesLists || ignoresCase || arePartsSame(readings))) return YES
    const possible = how.takesLists ? readings.possible() : (readings.possibleTexts ?? readings.possible)()
    if (possible === undefined) return MAYBE
    for (const text of possible) if (how.isPossible(text)) return MAYBE
    return NO
  }
}

/** As headers and targets are read: a character for each byte. */
function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1')
}

/** Occurrences that are looked at. With more of them, some backend may find a word that begins so. */
const MAX_OCCURRENCES = 64
const beforeWord = /[\s,;"'(=]/

/** Whether some word in a text, or the text itself, begins with a part. */
function hasWord(text: string, part: string): boolean {
  let at = text.indexOf(part)
  for (let count = 0; at !== -1; at = text.indexOf(part, at + 1)) {
    if (at === 0 || beforeWord.test(text.charAt(at - 1)) || ++count > MAX_OCCURRENCES) return true
  }
  return false
}
