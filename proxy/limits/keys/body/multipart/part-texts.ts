import type { PartHead } from './part-heads.ts'

/** Returns the possible texts of a content, according to its head. */
export function textsOf(content: string, head: PartHead): string[] {
  const texts = bytesOf(content, head)
  if (head.mayBeLatin1) texts.push(...texts.filter(isBeyondAscii).map(utf8OfLatin1))
  if (head.mayBeWide) texts.push(...wideTexts(content))
  return texts
}

/** Returns the content as sent, and with its transfer encoding decoded. */
function bytesOf(content: string, { isBase64, isQuoted }: PartHead): string[] {
  const texts = [content]
  if (isBase64) {
    texts.push(Buffer.from(content, 'base64').toString('latin1'))
    // formidable passes the content on undecoded, without the last block.
    texts.push(content.slice(0, Math.max(0, Math.ceil(content.length / 4) - 1) * 4))
  }
  if (isQuoted) texts.push(withoutQuotes(content))
  return texts
}

function isBeyondAscii(text: string): boolean {
  return /[\x80-\xff]/.test(text)
}

/** Encodes Latin-1 text as UTF-8, as backends do that read the bytes as Latin-1. */
function utf8OfLatin1(text: string): string {
  return Buffer.from(text).toString('latin1')
}

const cleanBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}={0,2}|[A-Za-z0-9+/]{3}=?)?$/

/**
 * Whether readers may decode a base64 text to different bytes. Python drops all other characters, even a line that looks like the end of
 * the part, and reads up to the padding. formidable decodes four characters at a time, restarts at a text that looks like a boundary, and
 * encodes the bytes again: Koa reads `anna=-=-` as `anna`. No client sends such a text to sign in.
 */
export function isDamagedBase64(content: string): boolean {
  return !cleanBase64.test(content)
}

/** Decodes a text as UTF-16, in either byte order. */
function wideTexts(text: string): string[] {
  const bytes = Buffer.from(text, 'latin1')
  const even = bytes.subarray(0, bytes.length - (bytes.length % 2))
  return [even, Buffer.from(even).swap16()].map((order) =>
    Buffer.from(order.toString('utf16le')).toString('latin1'),
  )
}

/** Decodes words such as `=?UTF-8?B?ZW1haWw=?=` (RFC 2047), which Tomcat reads in names. Drops NULs, halves of UTF-16 characters. */
export function withoutEncodedWords(text: string): string {
  return text
    .replace(/=\?[^?]*\?([bq])\?([^?]*)\?=/gi, (_, coding: string, word: string) =>
      coding.toLowerCase() === 'b' ? Buffer.from(word, 'base64').toString('latin1') : withoutQuotes(word),
    )
    .replaceAll('\0', '')
}

/** Decodes quoted-printable (RFC 2045 section 6.7). */
function withoutQuotes(text: string): string {
  return text
    .replace(/=\r?\n/g, '')
    .replace(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}
