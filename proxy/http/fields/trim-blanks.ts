/** Whether a code is a space or a tab, the only blanks around a header value that do not belong to it (RFC 9110 section 5.5). */
function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/**
 * Returns the part of a text between two offsets, without the blanks around it, in linear time. The expression `[\t ]+$` would start again
 * at each blank within a value.
 */
export function trimBlanks(text: string, start = 0, end = text.length): string {
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

// The rest of this file is about blanks that HTTP does not know, in header values with one character per byte. In Latin-1, Python's
// `str.strip` and `split` take U+0085 and U+00A0 for blanks; Go's `strings.TrimSpace` and `Fields`, and backends that decode UTF-8, take
// all blanks of Unicode.

/** Blanks in UTF-8: White_Space of Unicode, and U+180E, U+200B and U+FEFF, which some versions of .NET and JavaScript take for blanks. */
const encoded = String.raw`\xc2[\x85\xa0]|\xe1(?:\x9a\x80|\xa0\x8e)|\xe2(?:\x80[\x80-\x8b\xa8\xa9\xaf]|\x81\x9f)|\xe3\x80\x80|\xef\xbb\xbf`
const encodedBlanks = new RegExp(encoded, 'g')
const mayHaveEncoded = /[\xc2\xe1-\xe3\xef]/

/** Replaces each multi-byte blank by a space; blanks of one byte stay. */
export function withSpaces(value: string): string {
  return mayHaveEncoded.test(value) ? value.replace(encodedBlanks, ' ') : value
}

/**
 * Uses no regular expression: `[…]+$` would start again at each blank, which takes quadratic time for thousands of blanks. For the same
 * reason, a blank of one byte is recognized by this byte alone.
 */
export function withoutBlanksAround(value: string): string {
  let start = 0
  let end = value.length
  for (let length = 1; length > 0 && start < end; start += length) length = lengthOfBlankAt(value, start)
  for (let length = 1; length > 0 && start < end; end -= length) length = lengthOfBlankBefore(value, end)
  return value.slice(start, end)
}

function lengthOfBlankAt(value: string, start: number): number {
  const code = value.charCodeAt(start)
  if (isLenientBlank(code)) return 1
  if (code < FIRST_OF_BLANK) return 0
  const second = value.charCodeAt(start + 1)
  if (isTwoByteBlank(code, second)) return 2
  return isThreeByteBlank(code, second, value.charCodeAt(start + 2)) ? 3 : 0
}

/** @param end where the blanks that have already been found begin */
function lengthOfBlankBefore(value: string, end: number): number {
  const code = value.charCodeAt(end - 1)
  if (isLenientBlank(code)) return 1
  if (code < 0x80) return 0
  // The last byte of U+0085, U+00A0 or U+2005 is a blank itself. It has been found already, and follows.
  const next = value.charCodeAt(end)
  if (isTwoByteBlank(code, next)) return 1
  const before = value.charCodeAt(end - 2)
  if (isThreeByteBlank(before, code, next)) return 2
  return isThreeByteBlank(value.charCodeAt(end - 3), before, code) ? 3 : 0
}

/** The lowest first byte of a blank of several bytes. */
const FIRST_OF_BLANK = 0xc2

function isTwoByteBlank(first: number, second: number): boolean {
  return first === 0xc2 && (second === 0x85 || second === 0xa0)
}

function isThreeByteBlank(first: number, second: number, third: number): boolean {
  if (first < 0xe1) return false
  if (first === 0xe1) return (second === 0x9a && third === 0x80) || (second === 0xa0 && third === 0x8e)
  if (first === 0xe2) return (second === 0x80 && isGeneralBlank(third)) || (second === 0x81 && third === 0x9f)
  if (first === 0xe3) return second === 0x80 && third === 0x80
  return first === 0xef && second === 0xbb && third === 0xbf
}

function isGeneralBlank(third: number): boolean {
  return (third >= 0x80 && third <= 0x8b) || third === 0xa8 || third === 0xa9 || third === 0xaf
}

function isLenientBlank(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x85 || code === 0xa0
}
