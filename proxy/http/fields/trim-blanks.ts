/** A space or a tab: the only blanks around the value of a header that are no part of it (RFC 9110 section 5.5). */
function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/**
 * The part of a text between two offsets, without the blanks around it, in linear time: the expression `[\t ]+$` would start again at
 * each blank within a value.
 */
export function trimBlanks(text: string, start = 0, end = text.length): string {
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

// Blanks that HTTP does not know, in the values of headers, a character for each byte. Python's `str.strip` and `split` take U+0085 and
// U+00A0 for blanks in Latin-1; Go's `strings.TrimSpace` and `Fields`, and backends that decode UTF-8, those of Unicode.

/** Blanks in UTF-8: White_Space of Unicode, and U+180E, U+200B and U+FEFF, which some versions of .NET and JavaScript take for blanks. */
const encoded = String.raw`\xc2[\x85\xa0]|\xe1(?:\x9a\x80|\xa0\x8e)|\xe2(?:\x80[\x80-\x8b\xa8\xa9\xaf]|\x81\x9f)|\xe3\x80\x80|\xef\xbb\xbf`
const encodedBlank = new RegExp(`^(?:${encoded})$`)
const encodedBlanks = new RegExp(encoded, 'g')
const mayHaveEncoded = /[\xc2\xe1-\xe3\xef]/

/** Replaces each multi-byte blank by a space; blanks of one byte stay. */
export function withSpaces(value: string): string {
  return mayHaveEncoded.test(value) ? value.replace(encodedBlanks, ' ') : value
}

/** No regular expression: `[…]+$` would start again at each blank, which takes quadratic time for thousands of them. */
export function withoutBlanksAround(value: string): string {
  let start = 0
  let end = value.length
  for (let length = 1; length > 0 && start < end; start += length) length = lengthOfBlankAt(value, start)
  for (let length = 1; length > 0 && start < end; end -= length) length = lengthOfBlankBefore(value, end)
  return value.slice(start, end)
}

function lengthOfBlankAt(value: string, start: number): number {
  const code = value.charCodeAt(start)
  if (code < 0x80) return isLenientBlank(code) ? 1 : 0
  for (const length of encodedLengths)
    if (encodedBlank.test(value.slice(start, start + length))) return length
  return isLenientBlank(code) ? 1 : 0
}

function lengthOfBlankBefore(value: string, end: number): number {
  const code = value.charCodeAt(end - 1)
  if (code < 0x80) return isLenientBlank(code) ? 1 : 0
  for (const length of encodedLengths)
    if (encodedBlank.test(value.slice(Math.max(0, end - length), end))) return length
  return isLenientBlank(code) ? 1 : 0
}

/** Lengths of encoded blanks, the longer first: U+2005 ends with the bytes of U+0085. */
const encodedLengths = [3, 2]

function isLenientBlank(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x85 || code === 0xa0
}
