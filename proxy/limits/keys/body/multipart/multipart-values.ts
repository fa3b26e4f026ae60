import type { UnreadKey } from '../../../../telemetry/telemetry.ts'
import { charsetsIn, isBeyondAscii } from '../../../../request/values/charsets.ts'
import { decodedText } from '../../../../request/values/lenient-text.ts'
import { isDamagedBase64, textsOf } from './part-texts.ts'
import { FoundLists, MAX_VALUES, type Findings } from '../found-values.ts'
import { operationsField, type BodyNames } from '../names/body-names.ts'
import type { FormNames } from '../names/form-names.ts'
import { FEW_NAMES, namesIn } from '../names/part-names.ts'
import {
  anyBoundary,
  BoundaryPlaces,
  boundaryOfH3,
  boundaryOfMojolicious,
  boundaryOfRack,
  hasBrokenWords,
  NextBoundary,
  type BoundaryReader,
} from './next-boundary.ts'
import { NextPlace, PartHeads, type PartHead, type Range } from './part-heads.ts'

/**
 * Reads the values of fields in a `multipart/form-data` body, in every way in which some backend could. Parts are found by the header that
 * names them, at any place and for any boundary, because parsers differ in which of several boundaries they use, and in the line ends that
 * they accept. Parts with a file name count like other parts.
 *
 * @param text one character per byte
 * @param contentType all lines of the request's `Content-Type`
 * @returns the findings for each name
 */
export function readMultipartValues(text: string, contentType: string, names: BodyNames): Findings[] {
  const boundaries = boundariesOf(contentType, text)
  const ofMojolicious = boundaries ? boundariesOfMojolicious(contentType) : []
  const search = new PartSearch(text, names, boundaries ?? [], ofMojolicious)
  if (!boundaries) search.found.cutAll()
  search.read()
  const isUsual = isUnambiguous(text, boundaries)
  return search.found.findings(1, (name) => (isUsual ? search.unread[name] : 'syntax'))
}

/**
 * Returns every text that a parser may take as the boundary: the quoted text, or the text up to a semicolon, of each `boundary` parameter;
 * and if the body has them, that text with its quotes, its first word, and for Rack the text up to a comma, a semicolon or a quote.
 *
 * @returns undefined if there are too many, one is too long, or some parsers may find others
 */
function boundariesOf(contentType: string, text: string): readonly string[] | undefined {
  const parameters = [...contentType.matchAll(/boundary\s*=/gi)]
  if (parameters.length > MAX_BOUNDARIES || hasUnusualBoundary(contentType)) return undefined
  const found = parameters.flatMap(({ 0: name, index }) => {
    const rest = contentType.slice(index + name.length)
    const sent = /^\s*("[^"]*"?|[^;]*)/.exec(rest)?.[1] ?? ''
    const others = [sent.trim(), sent.split(/[;,\s]/, 1)[0] ?? '', /^"?([^";,]+)/.exec(rest)?.[1] ?? '']
    return [sent.replaceAll('"', '').trim(), ...others.filter((one) => text.includes(`--${one}`))]
  })
  const boundaries = [...new Set(found)].filter((boundary) => boundary !== '')
  const isCut = boundaries.length > MAX_BOUNDARIES || boundaries.some(({ length }) => length > MAX_BOUNDARY)
  return isCut ? undefined : boundaries
}

const MAX_BOUNDARIES = 4
/** Maximum characters of a boundary (RFC 2046 section 5.1.1). To look for a longer one could take the square of its length. */
const MAX_BOUNDARY = 70

function boundariesOfMojolicious(contentType: string): readonly string[] {
  const found = contentType.matchAll(/boundary\s*=\s*(?:"([^"]+)"|([\w'(),.:?+/-]+))/gi)
  return Array.from(found, ([, quoted, word = '']) => quoted ?? word).slice(0, MAX_BOUNDARIES)
}

/**
 * Whether some parsers may find a boundary that others do not: an extended one (RFC 2231), such as `boundary*=utf-8''a`, one in quotes with
 * a backslash, or one whose name has quotes in it. No client sends such a type.
 */
function hasUnusualBoundary(contentType: string): boolean {
  const others = contentType.replace(/=\s*"[^"\\]*"/g, '=')
  return /boundary\s*\*|["\\]/i.test(others)
}

/** Whether the body has a single boundary, ends lines with CRLF, and is complete. All parsers read such a body alike. */
function isUnambiguous(text: string, [boundary, ...others]: readonly string[] = []): boolean {
  return (
    boundary !== undefined &&
    others.length === 0 &&
    text.startsWith(`--${boundary}\r\n`) &&
    text.trimEnd().endsWith(`\r\n--${boundary}--`)
  )
}

/** Werkzeug allows blanks of any kind after a header's name, and line ends before them. */
const disposition = /content-disposition[^\x21-\x7e]*:/gi
/**
 * Rack takes the name of a field from its `Content-ID` if the part has no name in a `Content-Disposition`, and from its `Content-Type` if
 * that is missing, too. It finds them anywhere in a head, and skips blanks and line ends before the name. Other parts have such headers,
 * too, so only those with a wanted name are read.
 */
const otherNaming = /content-(?:id|type)[^\x21-\x7e]*:(?:(?!\r\n\r\n)\s)*/gi
const headerEnd = /\r?\n(?![ \t])|\r(?![\n \t])|$/g
/** A reference to a form among the arguments of a server action, as in `["$K1"]`. The client chooses the text after `K`. */
const serverForm = /(?:\$|\\u0024)(?:K|\\u004b)/i
const crlfBlank = '\r\n\r\n'
const blankLine = /\r?\n\r?\n|\r\r/g

class PartSearch {
  readonly found: FoundLists
  /** Why each name may be read differently. */
  readonly unread: (UnreadKey | undefined)[] = []
  readonly #text: string
  readonly #names: FormNames
  /** The number of the name of the part with a GraphQL request; -1 if no rule looks for one. */
  readonly #operations: number
  #parts = 0
  /** The number of parts with each name. */
  readonly #partCounts: number[]
  /** The start of the content that was last read for each name. */
  readonly #lastStarts: number[] = []
  #unusual = 0
  /** Bytes of heads and contents scanned so far. They overlap only in hostile bodies. */
  #bytes = 0
  /** Whether React may take fields such as `_1_email` for those of a form. */
  readonly #hasServerAction: boolean
  /** Whether the last part read is the field `_charset_`. */
  #isCharsetField = false
  #isBeyondAscii: boolean | undefined
  /** The ends of the content after the first blank line, and after later ones. Each is searched from left to right. */
  readonly #ends: readonly (readonly ContentEnd[])[]
  readonly #lastLine: number
  readonly #blanks: NextPlace
  readonly #crlfBlanks: NextPlace
  readonly #lineEnds: NextPlace
  readonly #heads: PartHeads
  readonly #boundaries: readonly string[]
  readonly #places: ReadonlyMap<string, BoundaryPlaces>

  constructor(
    text: string,
    names: BodyNames,
    boundaries: readonly string[],
    boundariesOfMojo: readonly string[],
  ) {
    this.#text = text
    this.#boundaries = boundaries
    this.#names = names.form
    this.#hasServerAction = serverForm.test(text)
    this.#operations = names.numberOf(operationsField) ?? -1
    this.found = new FoundLists(names.count, MAX_VALUES)
    this.#partCounts = Array.from({ length: names.count }, () => 0)
    // With several boundaries, the body is ambiguous in any case.
    this.#heads = new PartHeads(text, boundaries.length === 1 ? `--${boundaries[0] ?? ''}` : '\r\n\r\n--')
    this.#blanks = new NextPlace(text, blankLine)
    this.#crlfBlanks = new NextPlace(text, /\r\n\r\n/g)
    this.#lineEnds = new NextPlace(text, /[\r\n]/g)
    this.#lastLine = text.lastIndexOf('\n') + 1
    const places = new Map(boundaries.map((one) => [one, new BoundaryPlaces(text, one)]))
    this.#places = places
    this.#ends = [0, 1].map(() => [
      // Flask also ends a line with a lone CR.
      { place: new NextPlace(text, /(?:\r?\n|\r)--/g), dropped: 0 },
      ...places
        .values()
        .flatMap((one) => readersOf(text, one).map((reader) => new NextBoundary(text, one, reader)))
        .map((place) => ({ place, dropped: 0 })),
      // Without a line with its boundary, Mojolicious drops as many bytes as the last line of a body has, whatever they are.
      ...boundariesOfMojo.map((one) => ({
        place: new NextBoundary(
          text,
          places.get(one) ?? new BoundaryPlaces(text, one),
          boundaryOfMojolicious,
        ),
        dropped: one.length + 8,
      })),
    ])
  }

  read(): void {
    const isBroken = this.#places.values().some((one) => one.isBrokenIn(this.#text))
    if (isBroken || hasBrokenWords(this.#text, this.#places)) this.found.cutAll()
    const dispositions = new NextPlace(this.#text, disposition)
    const others = new NextPlace(this.#text, otherNaming)
    let afterDisposition = 0
    let afterOther = 0
    while (!this.found.isCut) {
      const next = dispositions.from(afterDisposition)
      const other = others.from(afterOther)
      if (other && !(next && next.index < other.index)) {
        afterOther = other.index + other.length
        this.#readOtherNaming(other.index, afterOther)
      } else if (next) {
        // A line has at most one `Content-Disposition`.
        afterDisposition = Math.max(this.#readDisposition(next.index), next.index + next.length)
      } else return
    }
  }

  /** Returns the end of the header. */
  #readDisposition(start: number): number {
    if (++this.#parts > MAX_PARTS) this.found.cutAll()
    headerEnd.lastIndex = start
    const lineEnd = headerEnd.exec(this.#text)?.index ?? this.#text.length
    const part = this.#partAt(start, lineEnd)
    if (!part) return lineEnd
    if (part.isDamaged) this.found.cutAll()
    const matched = this.#namesIn(this.#text.slice(start, part.head.end))
    if (this.#isCharsetField) this.#readCharset(part.starts)
    if (matched.size > 0) this.#readPart(part, matched)
    return lineEnd
  }

  #readOtherNaming(start: number, nameStart: number): void {
    const lineEnd = this.#lineEnds.from(nameStart)?.index ?? this.#text.length
    const matched = this.#namesOfLine(nameStart, lineEnd)
    const part = matched.size > 0 ? this.#partAt(start, lineEnd) : undefined
    if (!part) return
    if (part.isDamaged) for (const name of matched.keys()) this.found.cut(name)
    this.#readPart(part, matched)
  }

  /**
   * Returns the part with a header.
   *
   * @returns undefined if it has no content, or there is too much to read
   */
  #partAt(start: number, lineEnd: number): Part | undefined {
    const places = this.#contentPlaces(lineEnd)
    if (places.length === 0) return undefined
    // The head extends up to the content, because for some parsers a lone CR or LF does not end a header.
    const end = Math.max(...places.map(({ headEnd }) => headEnd))
    if (!this.#mayRead(end - start)) return undefined
    // Including the line end before the content.
    const head = this.#text.slice(start, end + 2)
    return {
      head: { start, end },
      starts: places.map(({ content }) => content),
      isDamaged:
        isDamaged(head) ||
        this.#boundaries.some((one) => head.includes(`\n--${one}`)) ||
        places.some(({ content }) => this.#isBoundary(content)),
    }
  }

  /**
   * Returns the places at which the content after a line of a head may begin: after the first blank line or, for Rack, after the first one
   * with CRLF.
   */
  #contentPlaces(lineEnd: number): readonly ContentPlace[] {
    const any = this.#blanks.from(lineEnd)
    // Without a blank line, PHP takes the text after the last line end as the content.
    if (!any) {
      const last = { headEnd: this.#lastLine, content: this.#lastLine }
      return last.content > lineEnd ? [last] : []
    }
    const usual = this.#text.startsWith(crlfBlank, any.index) ? any : this.#crlfBlanks.from(lineEnd)
    const blanks = usual && usual.index !== any.index ? [any, usual] : [any]
    return blanks.map(({ index, length }) => ({ headEnd: index, content: index + length }))
  }

  /** Whether a boundary follows a blank line directly: for some parsers it ends the part, for busboy it is content. */
  #isBoundary(place: number): boolean {
    return this.#boundaries.some((one) => this.#text.startsWith(`--${one}`, place))
  }

  #mayRead(bytes: number): boolean {
    this.#bytes += bytes
    if (this.#bytes > MAX_BYTES) this.found.cutAll()
    return !this.found.isCut
  }

  /** The names that a head may mean, and whether only as members of a model. */
  #namesIn(header: string): ReadonlyMap<number, boolean> {
    const matched = new Map<number, boolean>()
    const names = namesIn(header)
    this.#isCharsetField = false
    if (!names) this.found.cutAll()
    for (const sent of names && names.length > FEW_NAMES ? new Set(names) : (names ?? [])) {
      let by = this.#names.ofSent(sent, 0, sent.length)
      if (by === undefined && ++this.#unusual > MAX_UNUSUAL_NAMES) this.found.cutAll()
      if (this.found.isCut) return noNames
      const name = by === undefined || mayBeCharsetField(sent) ? decodedText(sent, false) : sent
      this.#isCharsetField ||= name === charsetField
      by ??= this.#names.ofDecoded(name)
      if (this.#hasServerAction) by = [...by, ...this.#namesAfterPrefix(sent)]
      for (const number of by) if (!this.found.isCutFor(number)) matched.set(number, false)
      for (const number of this.#names.ofModel(sent, 0, sent.length))
        if (!this.found.isCutFor(number) && !matched.has(number)) matched.set(number, true)
    }
    return matched
  }

  /** The names that a name may mean for React, which the client's prefix precedes, any text between underscores. */
  #namesAfterPrefix(sent: string): number[] {
    const names: number[] = []
    let at = sent.length
    for (let words = 0; words < MAX_WORDS && at > 0; words++) {
      at = sent.lastIndexOf('_', at - 1)
      if (at < 0) break
      names.push(...(this.#names.ofSent(sent, at + 1, sent.length) ?? []))
    }
    return names
  }

  /** The names that the rest of a line may mean. */
  #namesOfLine(start: number, end: number): ReadonlyMap<number, boolean> {
    let by = this.#names.ofSent(this.#text, start, end)
    if (by === undefined) {
      if (end - start > MAX_OTHER_NAME) return noNames
      if (++this.#unusual > MAX_UNUSUAL_NAMES) this.found.cutAll()
      if (!this.#mayRead(end - start)) return noNames
      by = this.#names.ofDecoded(decodedText(this.#text.slice(start, end), false))
    }
    return new Map(by.filter((name) => !this.found.isCutFor(name)).map((name) => [name, false]))
  }

  /**
   * Reads the charset of all parts (RFC 7578 section 4.6), which aiohttp and Jetty use. In charsets other than UTF-8, only ASCII is
   * unambiguous.
   */
  #readCharset(starts: readonly number[]): void {
    const contents = starts.flatMap((start, i) => this.#contentsFrom(start, this.#ends[i]))
    for (const content of contents) {
      const { hasOther, hasUnknown, hasUtf16 } = charsetsIn(`; charset=${content.slice(0, MAX_CHARSET)}`)
      if (hasOther) this.#isBeyondAscii ??= isBeyondAscii(this.#text)
      if (hasUnknown || hasUtf16 || (hasOther && this.#isBeyondAscii)) this.found.cutAll()
    }
  }

  #contentsFrom(start: number, ways: readonly ContentEnd[] = [], maxBytes = MAX_CONTENT): string[] {
    const ends = new Set(
      ways.map(({ place, dropped }) =>
        Math.min(place.from(start - 2)?.index ?? this.#text.length - dropped, start + maxBytes),
      ),
    )
    const contents: string[] = []
    for (const end of ends)
      if (end > start && this.#mayRead(end - start)) contents.push(this.#text.slice(start, end))
    return contents
  }

  #readPart({ head: range, starts }: Part, matched: ReadonlyMap<number, boolean>): void {
    // An account may be anywhere in a GraphQL request.
    const maxBytes = matched.has(this.#operations) ? Infinity : MAX_CONTENT
    const contents = new Set(starts.flatMap((start, i) => this.#contentsFrom(start, this.#ends[i], maxBytes)))
    const [start = 0] = starts
    const byHead = new Map<PartHead, readonly string[]>()
    for (const [name, isExtra] of matched) {
      // Two headers of a part may have the same name.
      if (this.#lastStarts[name] === start) continue
      if (!isExtra) this.#lastStarts[name] = start
      const parts = (this.#partCounts[name] = (this.#partCounts[name] ?? 0) + 1)
      if (parts > MAX_PARTS_OF_NAME) this.found.cut(name)
      const head = this.#heads.of(name, range, start)
      if (head.hasUnknownCharset) this.found.cut(name)
      if (head.isBase64 && [...contents].some(isDamagedBase64)) this.found.cut(name)
      const texts = byHead.get(head) ?? [...contents].flatMap((content) => textsOf(content, head))
      byHead.set(head, texts)
      this.unread[name] ??= head.unread
      const item = this.found.countOf(name)
      for (const text of texts) this.found.add(name, text, 0, item, isExtra)
    }
  }
}

/** Where a content ends: at the next place or, if there is none, as many bytes before the end of the text. */
type ContentEnd = { readonly place: NextPlace | NextBoundary; readonly dropped: number }

function readersOf(text: string, { starts: [first = 0], length }: BoundaryPlaces): BoundaryReader[] {
  const usual = [anyBoundary, boundaryOfRack]
  // h3 does not read a body whose lines end in LF alone.
  return text.startsWith('\r\n', first + length) ? [...usual, boundaryOfH3] : usual
}

/** The range from the header that names a part to the end of the head, and the places at which the content may start. */
type Part = {
  readonly head: Range
  readonly starts: readonly number[]
  /** Whether readers find different ends of the head. */
  readonly isDamaged: boolean
}

/** The end of a head, and the start of the content after it. */
type ContentPlace = { readonly headEnd: number; readonly content: number }

/**
 * Whether readers find different ends of a head or of its lines: PHP ends a line at a NUL and after 5120 bytes, and does not read two CRs
 * as a blank line; for python-multipart, a line without a colon ends the head, and for Bottle a line of blanks. No browser or client
 * library sends such a head.
 */
function isDamaged(head: string): boolean {
  return (
    otherLineEnd.test(head) || withoutColon.test(head) || (head.length >= MAX_LINE && longLine.test(head))
  )
}

const MAX_LINE = 5000
const otherLineEnd = /\0|\r(?!\n)/
const withoutColon = /\r\n(?:[^\s:][^:\r\n]*|[^\S\r\n]+)\r/
// Anchored, because trying it at each character of a line would take quadratic time.
const longLine = new RegExp(`(?:^|\\n)[^\\n]{${MAX_LINE}}`)

const charsetField = '_charset_'
/** Maximum length of a charset's name. */
const MAX_CHARSET = 64

function mayBeCharsetField(name: string): boolean {
  return name.includes('%') && name.length <= 3 * charsetField.length
}

const noNames: ReadonlyMap<number, boolean> = new Map()

/** Maximum words, between underscores, of a name in a rule that React may find after a prefix. */
const MAX_WORDS = 8
/** Maximum parts to read, of all names together and of one wanted name, and bytes of a part's content. */
const MAX_PARTS = 1024
const MAX_PARTS_OF_NAME = 128
const MAX_CONTENT = 4096
/** Maximum bytes of heads and contents to scan, including overlaps: twice the bytes that are read of a body. */
const MAX_BYTES = 128 * 1024
/** Maximum names with escapes or non-ASCII characters to compare. */
const MAX_UNUSUAL_NAMES = 256
/** Maximum bytes of such a name in another header than `Content-Disposition`. Rack takes it as it is, so a longer one is not in a rule. */
const MAX_OTHER_NAME = 512
