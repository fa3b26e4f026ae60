import { withMarksAsLetters, withUsualLetters } from './comparable-letters.ts'
import { plainDigits } from './number-values.ts'

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
  const plain = text.replace(rareCharacters, rareStandIn)
  return plain === text ? undefined : comparable(plain)
}

function comparable(text: string): string {
  const decomposed = text.normalize('NFKD').slice(0, MAX_CHARACTERS)
  const seen = decomposed.replace(unseen, '')
  // Of nearly all names in Latin letters nothing else is left to do.
  if (isAscii.test(seen) && !decomposed.includes(iotaMark)) return spaced(seen.toLowerCase())
  const cased = decomposed.toUpperCase().toLowerCase()
  const folded = cased === decomposed ? seen : cased.normalize('NFKD').replace(unseen, '')
  return spaced(
    plainDigits(withUsualLetters(folded.replaceAll('l\u00b7', 'l'))).replace(rareCharacters, rareStandIn),
  )
}

function spaced(text: string): string {
  return text.replaceAll('+', ' ').replace(blanks, ' ').trim()
}

/**
 * Characters beyond the Basic Multilingual Plane, such as emoji, and U+FFFD: to `utf8mb4_general_ci` and `utf8mb4_unicode_ci` of MySQL and
 * MariaDB all of them are one character, `rareStandIn` here. Letters among them are also the usual ones.
 */
const rareCharacters = /[\u{10000}-\u{10ffff}\uFFFD]/gu
const rareStandIn = '\u{20000}'
const isPlain = /^(?:[!-~]| (?! ))*$/
/** Blanks that WordPress, and Rails with `squish`, replace by one space. */
const blanks = /\s+/g
const isAscii = /^[\0-\x7f]*$/
const controls = /[\0-\x08\x0e-\x1f\x7f]/g
/** A mark that is a letter in upper case. */
const iotaMark = '\u0345'
/** Marks on letters, ignorable characters, controls, and the place of a byte that is not UTF-8, which some decoders leave out. */
const unseen = /[\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}\0-\x08\x0e-\x1f\x7f-\x9f\uFFFD]/gu
/** Members of `unseenLetters` that NFKC turns into a space and a mark: a second reading keeps the space. */
const marksOnBlanks = /[\ufc5e-\ufc63\ufe70\ufe72\ufe74\ufe76\ufe78\ufe7a\ufe7c\ufe7e]/
/** Letters that Unicode's collations ignore, though NFKD makes characters of some: marks of Arabic and others, alone or on a space. */
const unseenLetters =
  /[\u0640\u06de\u07fa\u0824\u0828\u180a\u1cd3\u1cf2\u1cf3\ufc5e-\ufc63\ufcf2-\ufcf4\ufe70-\ufe7f]/g
