import { unescapedText } from './unescaped.ts'

const blank = /[\s\x85\u180e\u200b]/
const plain = /^[a-z0-9_.~-]*$/
const beyondAscii = /[^\0-\x7f]/
const escapedOrBeyondAscii = /[%+"\\\0\x80-\xff]/

/**
 * Reads a value or a name of a query or a cookie as the most lenient backend does, so that spellings that some backend treats as equal have
 * the same result: decodes escapes (`%41`, `%u0041`), reads `+` as a space, folds letter case, and drops surrounding blanks and the text
 * after a NUL. The result must only be compared, never forwarded. Texts that a strict backend distinguishes, such as `a+b` and `a b`, may
 * have the same result.
 *
 * Steps are repeated until nothing changes. Regardless of which steps a backend takes, and in which order, its reading has the same result
 * as the text that was sent.
 *
 * @param sent one character per byte
 * @param isQuoted the text is of a cookie, whose value may be quoted: `"a"`, with `\"` and `\101` in it
 */
export function decodedText(sent: string, isQuoted: boolean): string {
  if (plain.test(sent)) return sent
  const text = escapedOrBeyondAscii.test(sent) ? unescapedText(sent, isQuoted) : sent
  const lower = withoutBlanksAround(beyondAscii.test(text) ? folded(text) : text.toLowerCase())
  const nul = lower.indexOf('\0')
  return nul === -1 ? lower : withoutBlanksAround(lower.slice(0, nul))
}

function folded(text: string): string {
  // Some backends replace consecutive invalid bytes with one character, others with several.
  const single = text.includes('\uFFFD\uFFFD') ? text.replace(/\uFFFD{2,}/g, '\uFFFD') : text
  // Upper case first, as for paths, because it turns `ſ` and `ı` into the letters that backends read them as.
  const lower = single.toUpperCase().toLowerCase()
  return lower.includes('\u0307') ? lower.replaceAll('i\u0307', 'i') : lower
}

/**
 * Trims as `trim` does, and also NULs (PHP, Java), control characters (Java), and further blanks of Python, Go and older versions of .NET.
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
