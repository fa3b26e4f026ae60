import { withUsualLetters } from './comparable-letters.ts'
import { plainDigits } from '../number-values.ts'

/**
 * What each character counts as where texts are compared: without accents, wide and other compatible characters as the usual ones (Unicode
 * NFKD), in lower case, a space for a blank or a plus, and nothing for one that is not seen.
 *
 * @param text of any length: some characters are 18
 * @param maxLength of the result
 * @param isRareOne all characters beyond the Basic Multilingual Plane are the same one, letters too
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
 * Stands for all characters beyond the Basic Multilingual Plane, such as emoji, and for U+FFFD: to `utf8mb4_general_ci` and
 * `utf8mb4_unicode_ci` of MySQL and MariaDB they are one.
 */
const rareStandIn = '\u{20000}'
const rareCharacters = /[\u{10000}-\u{10ffff}]/gu
const replacement = 0xfffd
/** A plus is a space in forms. */
const blankOrPlus = /[\s+]/g
/** Marks on letters, ignorable characters, controls, and the place of a byte that is not UTF-8, which some decoders leave out. */
const unseen = /[\p{M}\p{Cf}\p{Default_Ignorable_Code_Point}\0-\x08\x0e-\x1f\x7f-\x9f\uFFFD]/gu

/** A table of 256 characters a row: only the rows that were needed. All of them are filled in a tenth of a second, and take 3 MB. */
const rows: (readonly string[] | undefined)[] = []

/** Whether Unicode's functions change it, or leave it out: all characters elsewhere are rare ones, and no others. */
function isInTable(code: number): boolean {
  return code < 0x20000 || (code >= 0x2f800 && code < 0x2fb00) || (code >= 0xe0000 && code < 0xe1000)
}

function foldedCharacter(code: number): string {
  const row = (rows[code >> 8] ??= foldRow(code & ~0xff))
  return row[code & 0xff] ?? ''
}

/** All at once: Unicode's functions take longer to call than to look at a character. */
function foldRow(first: number): readonly string[] {
  const codes = Array.from({ length: 0x100 }, (_, i) => first + i)
  const characters = codes.map((code) => (isSurrogate(code) ? '' : String.fromCodePoint(code)))
  return fold(characters.join(separator)).split(separator)
}

/** Half of a surrogate pair: no text has one, and Unicode's functions leave it as it is. */
const separator = '\ud800'

function isSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdfff
}

function fold(text: string): string {
  const cased = text.normalize('NFKD').toUpperCase().toLowerCase()
  const seen = cased.normalize('NFKD').replace(unseen, '')
  return plainDigits(withUsualLetters(seen)).replace(rareCharacters, rareStandIn).replace(blankOrPlus, ' ')
}
