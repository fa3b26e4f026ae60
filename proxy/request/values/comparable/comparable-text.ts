import { withMarksAsLetters } from './comparable-letters.ts'
import { foldedCharacters } from './folded-characters.ts'

/** Maximum characters of a text that grows as it is decomposed; no name of an account has so many. */
const MAX_CHARACTERS = 4096

/**
 * A text in the forms in which databases compare names of accounts: without accents (`é` is `e` to MySQL's default collation), wide and
 * other compatible characters as the usual ones (Unicode NFKC, which Django applies), and without characters that are not seen, such as
 * controls, which `trim` of Java and Python drop too.
 *
 * @param text decoded, in lower case, as of `decodedText`
 * @returns one; others too where letters are written as marks above others, and where NFKC has a blank and collations nothing
 */
export function comparableTexts(text: string): readonly string[] {
  if (isPlain.test(text)) return [text]
  if (isAscii.test(text)) return [text.replace(controls, '').replace(blanks, ' ').trim()]
  if (!mayHaveMarks.test(text)) return [comparable(text)]
  const seen = text.replace(unseenLetters, '')
  // Each takes time: most texts have one reading.
  const texts = new Set([seen, withMarksAsLetters(seen)])
  if (marksOnBlanks.test(text)) texts.add(text)
  return Array.from(texts, comparable)
}

/**
 * The text for databases that have one character for all beyond the Basic Multilingual Plane: `𝒶nna` is `🍣nna` to them.
 *
 * @param text as of `comparableTexts`
 * @returns undefined for a text without such characters
 */
export function comparableRareText(text: string): string | undefined {
  return rareCharacter.test(text) ? spaced(foldedCharacters(text, MAX_CHARACTERS, true)) : undefined
}

function comparable(text: string): string {
  return spaced(foldedCharacters(text, MAX_CHARACTERS, false))
}

/** Without more than one space in a row, and with `ll` for `l·l` of Catalan. */
function spaced(text: string): string {
  return text.replaceAll('l\u00b7', 'l').replace(spaces, ' ').trim()
}

const spaces = / {2,}/g
const rareCharacter = /[\ud800-\udfff\uFFFD]/
const isPlain = /^(?:[!-~]| (?! ))*$/
/** Blanks that WordPress, and Rails with `squish`, replace by one space. */
const blanks = /\s+/g
const isAscii = /^[\0-\x7f]*$/
const controls = /[\0-\x08\x0e-\x1f\x7f]/g
/** All marks on letters, and `unseenLetters`: what most names in Latin letters have none of. */
const mayHaveMarks = /[\u0300-\uffff]/
/** Members of `unseenLetters` that NFKC turns into a space and a mark: a second reading keeps the space. */
const marksOnBlanks = /[\ufc5e-\ufc63\ufe70\ufe72\ufe74\ufe76\ufe78\ufe7a\ufe7c\ufe7e]/
/** Letters that Unicode's collations ignore, though NFKD makes characters of some: marks of Arabic and others, alone or on a space. */
const unseenLetters =
  /[\u0640\u06de\u07fa\u0824\u0828\u180a\u1cd3\u1cf2\u1cf3\ufc5e-\ufc63\ufcf2-\ufcf4\ufe70-\ufe7f]/g
