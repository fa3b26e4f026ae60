import type { PartHead } from './part-heads.ts'

/** What a content may say, as its head tells. */
export function textsOf(content: string, { mayBeWide, isBase64, isQuoted }: PartHead): string[] {
  const texts = [content]
  if (mayBeWide) texts.push(...wideTexts(content))
  if (isBase64) {
    texts.push(Buffer.from(content, 'base64').toString('latin1'), lenientBase64(content))
    // Formidable gives it as it is, without the last block.
    texts.push(content.slice(0, Math.max(0, Math.ceil(content.length / 4) - 1) * 4))
  }
  if (isQuoted) texts.push(withoutQuotes(content))
  return texts
}

/** Base64 to Python, which drops any other character, a line that looks like the end of the part too, and reads up to the padding. */
function lenientBase64(content: string): string {
  let digits = ''
  let pads = 0
  for (const [at, piece] of content
    .replace(/[^A-Za-z0-9+/=]/g, '')
    .split('=')
    .entries()) {
    const over = digits.length % 4
    if (at > 0 && over >= 2 && over + ++pads >= 4) break
    if (piece !== '') pads = 0
    digits += piece
  }
  return Buffer.from(digits, 'base64').toString('latin1')
}

/** What a text says to whom it is UTF-16, in either order of bytes. */
function wideTexts(text: string): string[] {
  const bytes = Buffer.from(text, 'latin1')
  const even = bytes.subarray(0, bytes.length - (bytes.length % 2))
  return [even, Buffer.from(even).swap16()].map((order) =>
    Buffer.from(order.toString('utf16le')).toString('latin1'),
  )
}

/** `=?UTF-8?B?ZW1haWw=?=` (RFC 2047), which Tomcat reads in names. A NUL is half a character of UTF-16. */
export function withoutEncodedWords(text: string): string {
  return text
    .replace(/=\?[^?]*\?([bq])\?([^?]*)\?=/gi, (_, coding: string, word: string) =>
      coding.toLowerCase() === 'b' ? Buffer.from(word, 'base64').toString('latin1') : withoutQuotes(word),
    )
    .replaceAll('\0', '')
}

/** Quoted-printable (RFC 2045 section 6.7). */
function withoutQuotes(text: string): string {
  return text
    .replace(/=\r?\n/g, '')
    .replace(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}
