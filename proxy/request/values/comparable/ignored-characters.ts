import { unescapedBytes } from '../unescaped.ts'

/** Non-ASCII bytes, NULs, and escapes. */
const mayBeSpelled = /[\0\x80-\xff%]/
/** `ß`, which equals one `s` in the collation `utf8mb4_general_ci` of MySQL and MariaDB, and two in others. */
const sharpS = /(?:\xc3|%(?:25)*c3)(?:\x9f|%(?:25)*9f)|%(?:25)*u00df/gi
/**
 * NUL, and `U+0345`, a combining mark that is a letter in upper case. Unicode collations ignore both. For other backends a text ends at a
 * NUL or, for Java and PHP, which trim NULs, begins after it.
 */
const unseen = /\0|%(?:25)*00|%(?:25)*u0000|(?:\xcd|%(?:25)*cd)(?:\x85|%(?:25)*85)|%(?:25)*u0345/gi

/** Greek letters with an iota below, such as `ᾳ`: two letters in upper case, and one in collations that ignore accents. */
const iotaBelow =
  /(?:\xe1|%(?:25)*e1)(?:[\xbe\xbf]|%(?:25)*b[ef])|(?:\xcd|%(?:25)*cd)(?:\xba|%(?:25)*ba)|%(?:25)*u(?:1f[89a-f]|037a)/i

/**
 * Returns a text, and the texts that it is to databases which ignore some of its characters, or take one for another. They are changed
 * before `decodedText`, which cuts a text at a NUL and has `ss` for `ß`.
 *
 * @param sent one character per byte, with escapes or decoded
 */
export function spellingsOf(sent: string): ReadonlySet<string> {
  if (!mayBeSpelled.test(sent)) return new Set([sent])
  const seen = sent.replace(unseen, '')
  const spellings = new Set([sent, sent.replace(sharpS, 's'), seen, seen.replace(sharpS, 's')])
  if (iotaBelow.test(sent)) {
    const apart = unescapedBytes(sent, false).toString().normalize('NFKD')
    spellings.add(Buffer.from(apart.replaceAll('\u0345', '')).toString('latin1'))
  }
  return spellings
}
