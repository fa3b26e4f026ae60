import { withUsualLetters } from './comparable-letters.ts'
import { plainDigits } from '../number-values.ts'

/**
 * Folds each character to the form in which it is compared: without accents, wide and other compatible characters as the usual ones
 * (Unicode NFKD), in lower case, a blank or a plus as a space. Drops invisible characters.
 *
 * @param text of any length; some characters expand to 18
 * @param maxLength maximum length of the result
 * @param isRareOne whether all characters beyond the Basic Multilingual Plane are equal, including letters
 */
export function foldedCharacters(text: string, maxLength: number, isRareOne: boolean): string {
  let folded = ''
  for (let at = 0; at < text.length && folded.length < maxLength; at++) {
    const code = text.codePointAt(at) ?? 0
    if (code > 0xffff) at++
    const isRare = code > 0xffff ? isRareOne || !isInTable(code) : isRareOne && code === replacement
    folded += isRare ? rareStandIn : foldedCharacter(code)
  }
  return folded.slice(0, maxLength)
}

/**
 * Stands for all characters beyond the Basic Multilingual Plane, such as emoji, and for U+FFFD. They are equal in the collations
 * `utf8mb4_general_ci` and `utf8mb4_unicode_ci` of MySQL and MariaDB.
 */
const rareStandIn = '\u{20000}'
const rareCharacters = /[\u{10000}-\u{10ffff}]/gu
const replacement = 0xfffd
/** A plus is a space in forms. */
const blankOrPlus = /[\s+]/g
/** Marks on letters, ignorable characters, controls, and the replacement of invalid UTF-8, which some decoders omit. */
const unseen = /[\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}\0-\x08\x0e-\x1f\x7f-\x9f\uFFFD]/gu

/** A table with 256 characters per row. Rows are filled on demand; all of them would take a tenth of a second and 3 MB. */
const rows: (readonly string[] | undefined)[] = []

/** Whether a character is in the planes where Unicode's functions may change or drop characters. All others are rare characters. */
function isInTable(code: number): boolean {
  return code < 0x20000 || (code >= 0x2f800 && code < 0x2fb00) || (code >= 0xe0000 && code < 0xe1000)
}

function foldedCharacter(code: number): string {
  const row = (rows[code >> 8] ??= foldRow(code & ~0xff))
  return row[code & 0xff] ?? ''
}

/** Folds a whole row at once, because calling Unicode's functions takes longer than processing a character. */
function foldRow(first: number): readonly string[] {
  const codes = Array.from({ length: 0x100 }, (_, i) => first + i)
  const characters = codes.map((code) => (isSurrogate(code) ? '' : String.fromCodePoint(code)))
  return fold(characters.join(separator)).split(separator)
}

/** A lone surrogate, which no text contains, and which Unicode's functions do not change. */
const separator = '\ud800'

function isSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdfff
}

function fold(text: string): string {
  const cased = text.normalize('NFKD').toUpperCase().toLowerCase()
  const seen = cased.normalize('NFKD').replace(unseen, '')
  return plainDigits(withUsualLetters(seen)).replace(rareCharacters, rareStandIn).replace(blankOrPlus, ' ')
}
