import { withMarksAsLetters } from './comparable-letters.ts'
import { foldedCharacters } from './folded-characters.ts'

/** Maximum characters of a decomposed text. No account name has as many. */
const MAX_CHARACTERS = 4096

/**
 * Returns a text in the forms in which databases compare account names: without accents (`é` equals `e` in MySQL's default collation), with
 * wide and other compatible characters replaced by the usual ones (Unicode NFKC, which Django applies), and without invisible characters,
 * such as controls, which `trim` of Java and Python also drop.
 *
 * @param text decoded and in lower case, from `decodedText`
 * @returns one text; several if letters are written as marks above others, or if NFKC has a blank that collations ignore
 */
export function comparableTexts(text: string): readonly string[] {
  if (isPlain.test(text)) return [text]
  if (isAscii.test(text)) return [text.replace(controls, '').replace(blanks, ' ').trim()]
  if (!mayHaveMarks.test(text)) return [comparable(text)]
  const seen = text.replace(unseenLetters, '')
  // A set avoids comparing equal readings twice, because most texts have only one.
  const texts = new Set([seen, withMarksAsLetters(seen)])
  if (marksOnBlanks.test(text)) texts.add(text)
  return Array.from(texts, comparable)
}

/**
 * Returns the text for databases in which all characters beyond the Basic Multilingual Plane are equal, such as `𝒶nna` and `🍣nna`.
 *
 * @param text as for `comparableTexts`
 * @returns undefined for a text without such characters
 */
export function comparableRareText(text: string): string | undefined {
  return rareCharacter.test(text) ? spaced(foldedCharacters(text, MAX_CHARACTERS, true)) : undefined
}

function comparable(text: string): string {
  return spaced(foldedCharacters(text, MAX_CHARACTERS, false))
}

/** Replaces runs of spaces with one space, and Catalan's `l·l` with `ll`. */
function spaced(text: string): string {
  return text.replaceAll('l\u00b7', 'l').replace(spaces, ' ').trim()
}

const spaces = / {2,}/g
const rareCharacter = /[\ud800-\udfff\uFFFD]/
const isPlain = /^(?:[!-~]| (?! ))*$/
/** Blanks that WordPress, and Rails with `squish`, replace with one space. */
const blanks = /\s+/g
const isAscii = /^[\0-\x7f]*$/
const controls = /[\0-\x08\x0e-\x1f\x7f]/g
/** Covers all marks on letters and all `unseenLetters`. Most names in Latin letters have none of these characters. */
const mayHaveMarks = /[\u0300-\uffff]/
/** Members of `unseenLetters` that NFKC turns into a space and a mark: a second reading keeps the space. */
const marksOnBlanks = /[\ufc5e-\ufc63\ufe70\ufe72\ufe74\ufe76\ufe78\ufe7a\ufe7c\ufe7e]/
/** Letters that Unicode's collations ignore, although NFKD decomposes some: marks of Arabic and other scripts, alone or on a space. */
const unseenLetters =
  /[\u0640\u06de\u07fa\u0824\u0828\u180a\u1cd3\u1cf2\u1cf3\ufc5e-\ufc63\ufcf2-\ufcf4\ufe70-\ufe7f]/g
