import type { UnreadKey } from '../../../telemetry/telemetry.ts'
import { decodedText } from '../../../request/values/lenient-text.ts'
import { FoundLists, MAX_VALUES, type Findings } from './found-values.ts'
import type { BodyNames } from './names/body-names.ts'
import type { FormNames } from './names/form-names.ts'
import { NextPlace, PartHeads, type PartHead, type Range } from './part-heads.ts'

/**
 * The values of fields in a `multipart/form-data` body, as some backend could read them. Parts are found by their
 * `Content-Disposition`, wherever it stands and whatever the boundary is: parsers differ in which of several boundaries they take, and in how
 * lines end. A part with a file name counts like any other.
 *
 * @param text a character for each byte
 * @param contentType the header of the request; undefined if it is not that of such a body
 * @returns of each name
 */
export function readMultipartValues(
  text: string,
  contentType: string | undefined,
  names: BodyNames,
): Findings[] {
  const boundaries = boundariesOf(contentType ?? '')
  const search = new PartSearch(text, names, boundaries)
  search.read()
  const isUsual = isSound(text, boundaries)
  return search.found.findings(1, (name) => (isUsual ? search.unread[name] : 'syntax'))
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
  readonly found: FoundLists
  /** Of each name. */
  readonly unread: (UnreadKey | undefined)[] = []
  readonly #text: string
  readonly #names: FormNames
  #parts = 0
  /** Of each name how many parts have it. */
  readonly #meant: number[]
  #unusual = 0
  /** Of heads and contents that have been looked at, which overlap only in hostile bodies. */
  #bytes = 0
  readonly #ends: readonly NextPlace[]
  readonly #blanks: NextPlace
  readonly #heads: PartHeads

  constructor(text: string, names: BodyNames, boundaries: readonly string[]) {
    this.#text = text
    this.#names = names.form
    this.found = new FoundLists(names.count, MAX_VALUES)
    this.#meant = Array.from({ length: names.count }, () => 0)
    // With several of them the body is not sound.
    this.#heads = new PartHeads(text, boundaries.length === 1 ? `--${boundaries[0] ?? ''}` : '\r\n\r\n--')
    this.#blanks = new NextPlace(text, blankLine)
    this.#ends = [
      /\r?\n--/g,
      ...boundaries.map((one) => new RegExp(`\\r?\\n?--${RegExp.escape(one)}`, 'g')),
    ].map((end) => new NextPlace(text, end))
  }

  read(): void {
    const text = this.#text
    disposition.lastIndex = 0
    for (let found = disposition.exec(text); found && !this.found.isCut; found = disposition.exec(text)) {
      const start = found.index
      if (++this.#parts > MAX_PARTS) this.found.cutAll()
      headerEnd.lastIndex = start
      const lineEnd = headerEnd.exec(text)?.index ?? text.length
      // Headers have one in a line.
      disposition.lastIndex = Math.max(lineEnd, disposition.lastIndex)
      const blank = this.#blanks.from(lineEnd)
      if (!blank) continue
      // Up to the content: to some a single CR or LF does not end a header.
      if (!this.#mayRead(blank.index - start)) continue
      const meant = this.#meantBy(text.slice(start, blank.index))
      if (meant.size > 0) this.#readPart({ start, end: blank.index }, blank.index + blank.length, meant)
    }
  }

  #mayRead(bytes: number): boolean {
    this.#bytes += bytes
    if (this.#bytes > MAX_BYTES) this.found.cutAll()
    return !this.found.isCut
  }

  #meantBy(header: string): ReadonlySet<number> {
    const meant = new Set<number>()
    const names = namesIn(header)
    if (names.length > MAX_NAMES) this.found.cutAll()
    for (const sent of new Set(names)) {
      let by = this.#names.ofSent(sent, 0, sent.length)
      if (by === undefined && ++this.#unusual > MAX_UNUSUAL_NAMES) this.found.cutAll()
      if (this.found.isCut) return nobody
      by ??= this.#names.ofDecoded(decodedText(sent, false))
      for (const name of by) if (!this.found.isCutFor(name)) meant.add(name)
    }
    return meant
  }

  #readPart(disposition: Range, start: number, meant: ReadonlySet<number>): void {
    const ends = new Set(
      this.#ends.map((end) => Math.min(end.from(start - 2)?.index ?? this.#text.length, start + MAX_CONTENT)),
    )
    const contents: string[] = []
    for (const end of ends)
      if (end > start && this.#mayRead(end - start)) contents.push(this.#text.slice(start, end))
    const byHead = new Map<PartHead, readonly string[]>()
    for (const name of meant) {
      const parts = (this.#meant[name] = (this.#meant[name] ?? 0) + 1)
      if (parts > MAX_MEANT) this.found.cut(name)
      const head = this.#heads.of(name, disposition, start)
      const texts = byHead.get(head) ?? contents.flatMap((content) => textsOf(content, head))
      byHead.set(head, texts)
      this.unread[name] ??= head.unread
      const item = this.found.countOf(name)
      for (const text of texts) this.found.add(name, text, 0, item)
    }
  }
}

const nobody: ReadonlySet<number> = new Set()

/** What a content may say, as its head tells. */
function textsOf(content: string, { mayBeWide, isBase64, isQuoted }: PartHead): string[] {
  const texts = [content]
  if (mayBeWide) texts.push(...wideTexts(content))
  if (isBase64) texts.push(Buffer.from(content, 'base64').toString('latin1'))
  if (isQuoted) texts.push(withoutQuotes(content))
  return texts
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
