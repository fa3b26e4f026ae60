import { unescapedText } from './unescaped.ts'

const blank = /[\s\x85\u180e\u200b]/
const plain = /^[a-z0-9_.~-]*$/
const beyondAscii = /[^\0-\x7f]/
const escapedOrBeyondAscii = /[%+"\\\0\x80-\xff]/

/**
 * Reads a value or a name of a query or a cookie as the most lenient backend does, so that two spellings that some backend
 * takes for one come out as one: escapes decoded (`%41`, `%u0041`), `+` as a space, letter case folded, blanks around it
 * dropped, and the text after a NUL. It is text to compare, never to forward. Two texts that a strict backend tells apart
 * may come out as one, such as `a+b` and `a b`.
 *
 * Each step is repeated until nothing changes. So whichever of them a backend takes, and in whatever order, what it reads
 * comes out as what it was sent does.
 *
 * @param sent a character for each byte
 * @param isQuoted of a cookie, whose value may be quoted: `"a"`, with `\"` and `\101` in it
 */
export function decodedText(sent: string, isQuoted: boolean): string {
  if (plain.test(sent)) return sent
  const text = escapedOrBeyondAscii.test(sent) ? unescapedText(sent, isQuoted) : sent
  const lower = withoutBlanksAround(beyondAscii.test(text) ? folded(text) : text.toLowerCase())
  const nul = lower.indexOf('\0')
  return nul === -1 ? lower : withoutBlanksAround(lower.slice(0, nul))
}

function folded(text: string): string {
  // Bytes that are no UTF-8 are one character to some backends, and several to others.
  const single = text.includes('\uFFFD\uFFFD') ? text.replace(/\uFFFD{2,}/g, '\uFFFD') : text
  // Upper case first, as for paths: it turns `ſ` and `ı` into the letters that they are taken for.
  const lower = single.toUpperCase().toLowerCase()
  return lower.includes('\u0307') ? lower.replaceAll('i\u0307', 'i') : lower
}

/**
 * Trims as `trim` does, and removes NULs (PHP, Java), control characters (Java) and further blanks of Python, Go and older versions of
 * .NET.
 */
function withoutBlanksAround(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function isBlank(code: number): boolean {
  return code <= 0x20 || (code >= 0x80 && blank.test(String.fromCharCode(code)))
}
