import type { UnreadKey } from '../../../telemetry/telemetry.ts'
import { decodedText } from '../../../request/values/lenient-text.ts'
import { MAX_VALUES, type Findings, type FoundValue } from './found-values.ts'
import { FormName } from './form-names.ts'

/**
 * The values of a field in a `multipart/form-data` body, as some backend could read them. Parts are found by their
 * `Content-Disposition`, wherever it stands and whatever the boundary is: parsers differ in which of several boundaries they take, and in how
 * lines end. A part with a file name counts like any other.
 *
 * @param text a character for each byte
 * @param contentType the header of the request; undefined if it is not that of such a body
 * @param path names of the field
 */
export function readMultipartValues(
  text: string,
  contentType: string | undefined,
  path: readonly string[],
): Findings {
  const boundaries = boundariesOf(contentType ?? '')
  const search = new PartSearch(text, path, boundaries)
  search.read()
  const unread: UnreadKey | undefined = isSound(text, boundaries) ? search.unread : 'syntax'
  return { values: search.values, elements: 1, unread, isCut: search.isCut }
}

/** All that a parser may take for the boundary: a quoted one, or the text up to a semicolon, of each parameter of that name. */
function boundariesOf(contentType: string): readonly string[] {
  const found = [...contentType.matchAll(/boundary\s*=\s*("[^"]*"?|[^;]*)/gi)].flatMap(([, sent = '']) => [
    sent.replaceAll('"', '').trim(),
    sent.trim(),
    sent.split(/[;,\s]/, 1)[0] ?? '',
  ])
  return [...new Set(found)].filter((boundary) => boundary !== '').slice(0, MAX_BOUNDARIES)
}

const MAX_BOUNDARIES = 4

/** With one boundary, lines that end as they should, and an end: such a body is read by all parsers alike. */
function isSound(text: string, [boundary, ...others]: readonly string[]): boolean {
  return (
    boundary !== undefined &&
    others.length === 0 &&
    text.startsWith(`--${boundary}\r\n`) &&
    text.trimEnd().endsWith(`\r\n--${boundary}--`)
  )
}

const disposition = /content-disposition[ \t]*:/gi
const headerEnd = /\r?\n(?![ \t])|\r(?![\n \t])|$/g
const blankLine = /\r?\n\r?\n|\r\r/g

class PartSearch {
  readonly values: FoundValue[] = []
  unread: UnreadKey | undefined
  isCut = false
  readonly #text: string
  readonly #name: FormName
  readonly #boundary: string
  #parts = 0
  #meant = 0
  #unusual = 0
  /** Of heads and contents that have been looked at, which overlap only in hostile bodies. */
  #bytes = 0
  readonly #ends: readonly NextPlace[]
  readonly #blanks: NextPlace

  constructor(text: string, path: readonly string[], boundaries: readonly string[]) {
    this.#text = text
    this.#name = new FormName(path)
    // With several of them the body is not sound.
    this.#boundary = boundaries.length === 1 ? `--${boundaries[0] ?? ''}` : '\r\n\r\n--'
    this.#blanks = new NextPlace(text, blankLine)
    this.#ends = [
      /\r?\n--/g,
      ...boundaries.map((one) => new RegExp(`\\r?\\n?--${RegExp.escape(one)}`, 'g')),
    ].map((end) => new NextPlace(text, end))
  }

  read(): void {
    const text = this.#text
    let behindLast = 0
    disposition.lastIndex = 0
    for (let found = disposition.exec(text); found && !this.isCut; found = disposition.exec(text)) {
      const start = found.index
      if (++this.#parts > MAX_PARTS) this.isCut = true
      headerEnd.lastIndex = start
      const lineEnd = headerEnd.exec(text)?.index ?? text.length
      // Headers have one in a line.
      disposition.lastIndex = Math.max(lineEnd, disposition.lastIndex)
      const blank = this.#blanks.from(lineEnd)
      if (!blank) continue
      // Up to the content: to some a single CR or LF does not end a header.
      if (!this.#mayRead(blank.index - start) || !this.#isMeant(text.slice(start, blank.index))) continue
      const content = blank.index + blank.length
      const before = text.slice(behindLast, start)
      const head = before.slice(Math.max(0, before.lastIndexOf(this.#boundary)))
      this.#readPart(head + text.slice(start, blank.index), content)
      behindLast = content
    }
  }

  #mayRead(bytes: number): boolean {
    this.#bytes += bytes
    if (this.#bytes > MAX_BYTES) this.isCut = true
    return !this.isCut
  }

  #isMeant(header: string): boolean {
    const names = namesIn(header)
    if (names.length > MAX_NAMES) this.isCut = true
    for (const sent of new Set(names)) {
      const isMeant = this.#name.isSent(sent, 0, sent.length)
      if (isMeant === undefined && ++this.#unusual > MAX_UNUSUAL_NAMES) this.isCut = true
      if (this.isCut) return false
      if (isMeant ?? this.#name.isDecoded(decodedText(sent, false))) return true
    }
    return false
  }

  #readPart(head: string, start: number): void {
    const ends = new Set(
      this.#ends.map((end) => Math.min(end.from(start - 2)?.index ?? this.#text.length, start + MAX_CONTENT)),
    )
    const item = this.values.length
    if (++this.#meant > MAX_MEANT) this.isCut = true
    const charset = head.search(/charset/i)
    const mayBeWide = charset !== -1 && /16|32/.test(head.slice(charset))
    for (const end of ends) {
      if (end <= start || !this.#mayRead(end - start)) continue
      const content = this.#text.slice(start, end)
      this.#add(content, item)
      if (mayBeWide) for (const wide of wideTexts(content)) this.#add(wide, item)
      if (/base64/i.test(head)) this.#add(Buffer.from(content, 'base64').toString('latin1'), item)
      if (/quoted-printable/i.test(head)) this.#add(withoutQuotes(content), item)
    }
    if (isEncoded.test(head)) this.unread ??= 'encoding'
    if (/charset/i.test(head) && !/charset\s*=\s*"?(?:utf-?8|us-ascii)"?\s*(?:[;\r\n]|$)/i.test(head))
      this.unread ??= 'charset'
  }

  #add(text: string, item: number): void {
    if (this.values.length === MAX_VALUES) this.isCut = true
    else this.values.push({ text, element: 0, item })
  }
}

/** Parts that are looked at: of all names, and of the name that is wanted; and bytes of the content of one. */
const MAX_PARTS = 1024
const MAX_MEANT = 128
const MAX_CONTENT = 4096
/** Bytes of heads and contents that are looked at, with those that overlap: twice as many as are read of a body. */
const MAX_BYTES = 128 * 1024
/** Readings of the names in the head of one part. */
const MAX_NAMES = 256
/** Names with escapes or characters beyond ASCII that are compared at most. */
const MAX_UNUSUAL_NAMES = 256
const isEncoded = /content-transfer-encoding[ \t]*:[ \t]*(?!7bit|8bit|binary)/i

/** The places of a pattern, asked for from left to right: the text is looked through once. */
class NextPlace {
  readonly #text: string
  readonly #pattern: RegExp
  #found: { readonly index: number; readonly length: number } | undefined
  #hasEnded = false

  constructor(text: string, pattern: RegExp) {
    this.#text = text
    this.#pattern = pattern
  }

  from(start: number): { readonly index: number; readonly length: number } | undefined {
    if (this.#hasEnded || (this.#found && this.#found.index >= start)) return this.#found
    this.#pattern.lastIndex = start
    const found = this.#pattern.exec(this.#text)
    this.#hasEnded = !found
    this.#found = found ? { index: found.index, length: found[0].length } : undefined
    return this.#found
  }
}

/** Names that a `Content-Disposition` may give: quoted in either way or not at all, extended (`name*=UTF-8''a`), repeated. */
function namesIn(header: string): readonly string[] {
  const names: string[] = []
  let continued = ''
  for (const [, sent = ''] of header.matchAll(/name\*?\d*\*?\s*=\s*("(?:[^"\\]|\\[^])*"?|[^;]*)/gi)) {
    const plain = sent.trim().replace(/^["']|["']$/g, '')
    names.push(plain, plain.replace(/\\([^])/g, '$1'), plain.replace(/^[^']*'[^']*'/, ''))
    const word = sent.split(/[\s;,]/, 1)[0] ?? ''
    names.push(word.replaceAll('"', ''), word.replace(/^[^']*'[^']*'/, ''))
    if (plain.includes('=?')) names.push(withoutEncodedWords(plain))
    if (names.length > MAX_NAMES) return names
  }
  // In several pieces (RFC 2231 section 3).
  for (const [, piece = ''] of header.matchAll(/name\*\d+\*?\s*=\s*("[^"]*"?|[^;]*)/gi))
    continued += piece.trim().replaceAll('"', '')
  if (continued !== '') names.push(continued, continued.replace(/^[^']*'[^']*'/, ''))
  return names
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
function withoutEncodedWords(text: string): string {
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
