import type { TextTest } from '../../policy/conditions.ts'
import type { Readings } from './readings.ts'
import { isPlainWord } from './plain-words.ts'

/** How a kind of condition compares texts. */
export type Comparison = {
  /** Converts a text of the table to the form that requests have. */
  sentAs(text: string): string
  /** Returns every spelling, in lower case, under which `possible` may have a text. */
  formsOf(text: string): readonly string[]
  /** Returns the spelling, in lower case, that `prefix` and `contains` look for. */
  partOf(text: string): string
  /** No backend distinguishes letter case or reads a text as a list. */
  readonly ignoresCase: boolean
}

export type CompiledTest = {
  /** Whether the test holds for at least one backend. */
  mayHold(readings: Readings): boolean
  /** Whether the test holds for every backend. */
  mustHold(readings: Readings): boolean
}

/** Compiles the tests of a condition, which holds if one of them does. */
export function compileTests(tests: readonly TextTest[], comparison: Comparison): CompiledTest {
  const compiled = tests.map((test) => compileTest(test, comparison))
  const [only] = compiled
  if (only && compiled.length === 1) return only
  return {
    mayHold(readings) {
      for (const test of compiled) if (test.mayHold(readings)) return true
      return false
    },
    mustHold(readings) {
      for (const test of compiled) if (test.mustHold(readings)) return true
      return false
    },
  }
}

const absentTest: CompiledTest = {
  mayHold: (readings) => !readings.isPresent(),
  mustHold: (readings) => readings.isAbsent(),
}

const presentTest: CompiledTest = {
  mayHold: (readings) => !readings.isAbsent(),
  mustHold: (readings) => readings.isPresent(),
}

function compileTest(test: TextTest, comparison: Comparison): CompiledTest {
  switch (test.kind) {
    case 'absent':
      return absentTest
    case 'present':
      return presentTest
    case 'is':
      return compileIs(test.text, comparison)
    case 'prefix':
      return compilePart(test.text, comparison, (text, part) => text.startsWith(part), hasWord)
    case 'contains':
      return compilePart(test.text, comparison, hasPart, hasPart)
  }
}

function hasPart(text: string, part: string): boolean {
  return text.includes(part)
}

/** Compares a text as a whole, even if backends may read it as a list. */
function compileIs(written: string, comparison: Comparison): CompiledTest {
  const { ignoresCase } = comparison
  const sent = comparison.sentAs(written)
  const wanted = ignoresCase ? sent.toLowerCase() : sent
  const isSame = ignoresCase
    ? (text: string) => text.toLowerCase() === wanted
    : (text: string) => text === wanted
  const forms = new Set(comparison.formsOf(sent))
  const [form = ''] = forms
  const word = forms.size === 1 && isPlainWord(form) ? form : undefined
  return {
    mayHold(readings) {
      if (readings.likely(ignoresCase) === wanted) return true
      if (readings.isAbsent()) return false
      if (word !== undefined && readings.lacksWord?.(word)) return false
      const possible = readings.possible()
      if (possible === undefined) return true
      for (const text of possible) if (forms.has(text)) return true
      return false
    },
    mustHold: (readings) => readings.certainly(isSame),
  }
}

function compilePart(
  written: string,
  comparison: Comparison,
  has: (text: string, part: string) => boolean,
  isPossible: (text: string, part: string) => boolean,
): CompiledTest {
  const { ignoresCase } = comparison
  const sent = comparison.sentAs(written)
  const part = comparison.partOf(sent)
  const wanted = ignoresCase ? sent.toLowerCase() : sent
  const isSame = ignoresCase
    ? (text: string) => has(text.toLowerCase(), wanted)
    : (text: string) => has(text, wanted)
  return {
    mayHold(readings) {
      const likely = readings.likely(ignoresCase)
      if (likely !== undefined && has(likely, wanted)) return true
      if (readings.isAbsent()) return false
      const possible = readings.possibleTexts ? readings.possibleTexts() : readings.possible()
      if (possible === undefined) return true
      for (const text of possible) if (isPossible(text, part)) return true
      return false
    },
    mustHold(readings) {
      if (!readings.certainly(isSame)) return false
      return ignoresCase || (readings.parts?.(wanted).every(isSame) ?? true)
    },
  }
}

/** Converts a text to a string with one character per byte, as Node reads headers and targets. */
export function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1')
}

/** Maximum occurrences to examine. If there are more, some word is assumed to begin with the part. */
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
