import { latin1Names, utf8Names } from '../../../../request/values/charsets.ts'
import type { UnreadKey } from '../../../../telemetry/telemetry.ts'

/** A range of a text, without its end. */
export type Range = { readonly start: number; readonly end: number }

/** The properties of a part's content, as declared in its head. */
export type PartHead = {
  /** Whether UTF-16 is named. */
  readonly mayBeWide: boolean
  /** Whether a charset other than UTF-8 is named. Readers differ in which of several they use. */
  readonly mayBeLatin1: boolean
  readonly isBase64: boolean
  readonly isQuoted: boolean
  readonly unread: UnreadKey | undefined
  /** Whether an unsupported charset is named, in which some framework could read any name from the content. */
  readonly hasUnknownCharset: boolean
}

/**
 * The heads of the parts with a wanted name. A head begins at the boundary before it or, without a boundary, at the content of the previous
 * such part. Each byte of the text is scanned once or twice.
 */
export class PartHeads {
  readonly #text: string
  readonly #boundary: string
  /** The last boundary before the current part, and the next one; -1 if there is none. */
  #lastBoundary = -1
  #nextBoundary: number
  /** The start of the content of the last part with each name. */
  readonly #afterLast: number[] = []
  #words: Words | undefined
  readonly #known = new Map<number, PartHead>()
  #knownEnd = -1

  constructor(text: string, boundary: string) {
    this.#text = text
    this.#boundary = boundary
    this.#nextBoundary = text.indexOf(boundary)
  }

  /**
   * Returns the head of the next part with a name.
   *
   * @param range from the header that names the part to the end of the head
   */
  of(name: number, range: Range, content: number): PartHead {
    // Two such headers may be followed by the same content.
    const from = Math.min(this.#afterLast[name] ?? 0, range.start)
    this.#afterLast[name] = content
    return this.#describe(Math.max(from, this.#boundaryBefore(range.start)), range.end)
  }

  #boundaryBefore(place: number): number {
    while (this.#nextBoundary !== -1 && this.#nextBoundary + this.#boundary.length <= place) {
      this.#lastBoundary = this.#nextBoundary
      this.#nextBoundary = this.#text.indexOf(this.#boundary, this.#nextBoundary + 1)
    }
    return this.#lastBoundary
  }

  #describe(start: number, end: number): PartHead {
    if (end !== this.#knownEnd) this.#known.clear()
    this.#knownEnd = end
    const known = this.#known.get(start)
    if (known) return known
    const words = (this.#words ??= wordsIn(this.#text))
    const has = (places: Places): boolean => places.firstIn(start, end) !== undefined
    const charsets = words.charset.countIn(start, end)
    const mayBeLatin1 = charsets > words.usualCharset.countIn(start, end)
    const head: PartHead = {
      mayBeWide: has(words.wideCharset),
      mayBeLatin1,
      isBase64: has(words.base64),
      isQuoted: has(words.quoted),
      hasUnknownCharset: charsets > words.knownCharset.countIn(start, end),
      unread: has(words.encoding) ? 'encoding' : mayBeLatin1 ? 'charset' : undefined,
    }
    this.#known.set(start, head)
    return head
  }
}
type Words = Readonly<
  Record<
    'charset' | 'usualCharset' | 'knownCharset' | 'wideCharset' | 'base64' | 'quoted' | 'encoding',
    Places
  >
>

const usualCharset = charsetOf(utf8Names.source)
const utf16Names = /utf-16(?:le|be)?/
const wideCharset = charsetOf(utf16Names.source)
const knownCharset = charsetOf(`${utf8Names.source}|${latin1Names.source}|${utf16Names.source}`)

function charsetOf(names: string): RegExp {
  return new RegExp(`charset\\s*=\\s*["']?(?:${names})["']?[ \\t]*(?=[;\\r\\n]|$)`, 'gi')
}

/** A transfer encoding in which the content is not as sent. */
const transferEncoding =
  /content-transfer-encoding[^\x21-\x7e]*:(?![ \t]*(?:7bit|8bit|binary)[ \t]*(?:[\r\n]|$))/gi

/** Finds the words of heads anywhere in the text. */
function wordsIn(text: string): Words {
  return {
    charset: new Places(text, /charset/gi),
    usualCharset: new Places(text, usualCharset),
    knownCharset: new Places(text, knownCharset),
    wideCharset: new Places(text, wideCharset),
    base64: new Places(text, /base64/gi),
    quoted: new Places(text, /quoted-printable/gi),
    encoding: new Places(text, transferEncoding),
  }
}

/** The matches of a pattern in a text. */
class Places {
  readonly #starts: number[] = []
  readonly #ends: number[] = []

  constructor(text: string, pattern: RegExp) {
    for (let found = pattern.exec(text); found; found = pattern.exec(text)) {
      this.#starts.push(found.index)
      this.#ends.push(pattern.lastIndex)
    }
  }

  /** The number of matches from `from` up to `end`. */
  countIn(from: number, end: number): number {
    return Math.max(0, firstAbove(this.#ends, end) - firstAbove(this.#starts, from - 1))
  }

  /** The start of the first match from `from` on, if it ends by `end`. */
  firstIn(from: number, end: number): number | undefined {
    const first = firstAbove(this.#starts, from - 1)
    return (this.#ends[first] ?? Infinity) <= end ? this.#starts[first] : undefined
  }
}

/** The index of the first number above a bound, in ascending numbers. */
function firstAbove(numbers: readonly number[], bound: number): number {
  let low = 0
  let high = numbers.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((numbers[middle] ?? 0) <= bound) low = middle + 1
    else high = middle
  }
  return low
}

/** Finds the next match of a pattern. Queries go from left to right, so that the text is scanned once. */
export class NextPlace {
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
