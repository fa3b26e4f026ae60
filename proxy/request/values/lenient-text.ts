import { unescapedBytes } from './unescaped.ts'

const plain = /^[a-z0-9_.~-]*$/
const escapedOrBeyondAscii = /[%+"\\\0\x80-\xff]/

/**
 * Reads a value of a query or a cookie as the most lenient backend does, so that two spellings that some backend takes for
 * one value come out as one: escapes decoded (`%41`, `%u0041`), `+` as a space, letter case folded, blanks around it
 * dropped. It is text to compare, never to forward. Two values that a strict backend tells apart may come out as one, such
 * as `a+b` and `a b`.
 *
 * Each step is repeated until nothing changes. So whichever of them a backend takes, and in whatever order, what it reads
 * comes out as what it was sent does.
 *
 * @param sent a character for each byte
 * @param isQuoted of a cookie, whose value may be quoted: `"a"`, with `\"` and `\101` in it
 */
export function lenientText(sent: string, isQuoted: boolean): string {
  if (plain.test(sent)) return sent
  // Bytes that are no UTF-8 are one character to some backends, and several to others.
  const text = escapedOrBeyondAscii.test(sent)
    ? unescapedBytes(sent, isQuoted)
        .toString()
        .replace(/\uFFFD{2,}/g, '\uFFFD')
    : sent
  // Upper case first, as for paths: it is what turns `ſ` and `ı` into the letters that they are taken for.
  return text.toUpperCase().toLowerCase().replaceAll('i\u0307', 'i').trim()
}

/**
 * The name of a query parameter or a cookie as lenient backends compare it: letter case is ignored (ASP.NET), and PHP reads
 * blanks, dots and brackets as `_`.
 *
 * @returns twice the same, mostly: of `a[b]`, which is a member of `a`, as the name of the whole and of `a`
 */
export function lenientNames(sent: string): readonly [string, string] {
  const name = lenientText(sent, false)
  const bracket = name.indexOf('[')
  const whole = mangled(name)
  return [whole, bracket === -1 ? whole : mangled(name.slice(0, bracket))]
}

function mangled(name: string): string {
  return name.replace(/[ .[\]]/g, '_')
}
