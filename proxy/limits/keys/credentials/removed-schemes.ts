/**
 * What backends remove from the value wherever it occurs, not only before the token: with `replace` of Python, Java and C#, and PHP's
 * `str_replace`. The shorter names may be part of a token, so they are removed only with the blank after them.
 */
const removals = ['Bearer ', 'Basic ', 'Token ', 'JWT '].flatMap(inBothCases)
const withoutBlank = ['Bearer', 'Basic'].flatMap(inBothCases)

function inBothCases(text: string): RegExp[] {
  return [new RegExp(text, 'g'), new RegExp(text, 'gi')]
}

const name = '(?:bearer|basic|token |jwt )'
const afterFirst = new RegExp(`[^]${name}`, 'i')
const withoutBlankAfter = /(?:bearer|basic)(?! )/i
const withinWord = new RegExp(`[^\\t \\x85\\xa0]${name}|(?:bearer|basic)[^\\t \\x85\\xa0]`, 'i')

/** Maximum number of texts. Values with each of the names before a token of its own have four. */
const MAX_TEXTS = 4

/**
 * Returns the texts that are left of the value of `Authorization` without the names of schemes, in each way in which backends remove them:
 * for `Bearer 12Bearer 34`, `1234`.
 *
 * @returns empty if no such name occurs after the first character; undefined if there are too many texts
 */
export function textsWithoutSchemes(value: string): readonly string[] | undefined {
  return afterFirst.test(value) ? removed(value) : none
}

/** The same, but only if a name occurs directly before or after other characters, so that the word is another one without it. */
export function joinedTexts(value: string): readonly string[] | undefined {
  return withinWord.test(value) ? removed(value) : none
}

function removed(value: string): readonly string[] | undefined {
  const applied = withoutBlankAfter.test(value) ? [...removals, ...withoutBlank] : removals
  const texts = new Set(applied.map((removal) => value.replace(removal, '')))
  texts.delete(value)
  return texts.size > MAX_TEXTS ? undefined : [...texts]
}

const none: readonly string[] = []
