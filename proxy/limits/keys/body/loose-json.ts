import { foldedName } from '../../../request/json/json-names.ts'
import type { Findings, FoundValue } from './found-values.ts'
import { wordTexts } from './json-values.ts'

/**
 * What lenient parsers may find in a text that is not valid JSON: with comments, unquoted names, single quotes, `=` for a colon, trailing
 * commas, several texts behind one another, or text behind them (Json.NET, Gson, JSON5, Go's decoder). Whatever looks like the
 * member is one, at any depth, since such parsers do not agree on the nesting. Each counts by itself.
 *
 * @param text a character for each byte
 * @param path names of members; only the last one is looked for
 */
export function readLooseJson(text: string, path: readonly string[]): Findings {
  const search = new LooseSearch(foldedName(path.at(-1) ?? ''))
  search.read(text)
  if (mayHaveComments.test(text)) {
    const plain = text.replace(comments, (_, string: string | undefined) => string ?? ' ')
    if (plain !== text) search.readAgain(plain)
  }
  return { values: search.values, elements: 1, unread: 'syntax', isCut: search.isCut }
}

const mayHaveComments = /\/[*/]|#/
/** A string is taken whole: a comment cannot begin in it. */
const comments = /("(?:[^"\\]|\\[^])*(?:"|$))|\/\*[^]*?(?:\*\/|$)|\/\/[^\r\n]*|#[^\r\n]*/g

const isNumber = /^[-+]?\.?\d/
const colon = 0x3a
const equalsSign = 0x3d
const greaterThan = 0x3e
const backslash = 0x5c

/** Bytes of a name for each letter of it, such as `\u0065`; of a value; of a container, and how many of these are looked at. */
const BYTES_PER_LETTER = 6
const MAX_CONTENT = 4 * 1024
const MAX_CONTAINER = 2 * 1024
const MAX_CONTAINERS = 32
/** Values that are looked at. In a valid text, where nothing overlaps, they may be more. */
const MAX_LOOSE_VALUES = 256
/** Names with escapes or characters beyond ASCII that are compared at most. */
const MAX_UNUSUAL_NAMES = 256

class LooseSearch {
  readonly values: FoundValue[] = []
  isCut = false
  readonly #name: string
  #containers = 0
  #unusual = 0

  constructor(name: string) {
    this.#name = name
  }

  /** Reads another form of the text. Values that were found before are not added again. */
  readAgain(text: string): void {
    const known = new Set(this.values.map((value) => value.text))
    const again = new LooseSearch(this.#name)
    again.read(text)
    this.isCut ||= again.isCut
    for (const { text: found } of again.values) if (!known.has(found)) this.#push(found)
  }

  read(text: string): void {
    for (let at = 0; at < text.length && !this.isCut; at++) {
      const code = text.charCodeAt(at)
      if (code !== colon && code !== equalsSign) continue
      if (!this.#isNameBefore(text, at)) continue
      this.#readValue(text, text.charCodeAt(at + 1) === greaterThan ? at + 2 : at + 1)
    }
  }

  /** Whether the name of the member stands before a separator, with quotes or without, and blanks behind it. */
  #isNameBefore(text: string, separator: number): boolean {
    let end = separator
    while (end > 0 && isBlank[text.charCodeAt(end - 1)]) end--
    const closing = text.charCodeAt(end - 1)
    const isQuoted = isQuote[closing] === true
    if (isQuoted) end--
    const first = Math.max(0, end - this.#name.length * BYTES_PER_LETTER - 8)
    let left = this.#name.length
    let isSame = true
    let isUnusual = false
    let at = end - 1
    for (; at >= first; at--) {
      const code = text.charCodeAt(at)
      if (isQuoted ? code === closing : endsWord[code] && code !== backslash) break
      if (code === backslash || code > 0x7f) isUnusual = true
      else if (isSame && isLetterOrDigit[code])
        isSame = left > 0 && lowerCase(code) === this.#name.charCodeAt(--left)
    }
    if (isQuoted && at < first) return false
    if (!isUnusual) return isSame && left === 0
    if (++this.#unusual > MAX_UNUSUAL_NAMES) this.isCut = true
    return foldedName(decoded(text.slice(at + 1, end))) === this.#name
  }

  #readValue(text: string, start: number): void {
    let at = start
    while (isBlank[text.charCodeAt(at)]) at++
    const first = text.charAt(at)
    if (first !== '{' && first !== '[') this.#addToken(text, at)
    else if (++this.#containers > MAX_CONTAINERS) this.isCut = true
    else this.#readContainer(text.slice(at, at + MAX_CONTAINER))
  }

  #readContainer(text: string): void {
    let depth = 0
    for (let at = 0; at < text.length && !this.isCut;) {
      const code = text.charCodeAt(at)
      const character = text.charAt(at)
      if (character === '{' || character === '[') depth++
      else if ((character === '}' || character === ']') && --depth === 0) return
      at = isQuote[code] || !endsWord[code] ? this.#addToken(text, at) : at + 1
    }
  }

  /** Returns the place behind the string or the word that begins here. */
  #addToken(text: string, start: number): number {
    const quote = text.charCodeAt(start)
    let end = start
    if (isQuote[quote]) {
      for (end = start + 1; end < text.length && text.charCodeAt(end) !== quote; end++)
        if (text.charCodeAt(end) === backslash) end++
      this.#add(text.slice(start + 1, end))
      return end + 1
    }
    while (end < text.length && !endsWord[text.charCodeAt(end)]) end++
    const found = text.slice(start, end)
    if (isNumber.test(found)) for (const text of wordTexts(found)) this.#add(text)
    else if (found !== 'null') this.#add(found)
    return Math.max(end, start + 1)
  }

  #add(sent: string): void {
    const content = sent.slice(0, MAX_CONTENT)
    if (content === '') return
    this.#push(content.includes('\\') ? Buffer.from(decoded(content)).toString('latin1') : content)
    if (!content.includes('\\x')) return
    // To Ruby's parser it is an `x`.
    const otherwise = content.replace(/\\(\\|x)/g, (escape, of: string) => (of === 'x' ? of : escape))
    this.#push(Buffer.from(decoded(otherwise)).toString('latin1'))
  }

  #push(text: string): void {
    const item = this.values.length
    if (item === MAX_LOOSE_VALUES) this.isCut = true
    else this.values.push({ text, element: 0, item })
  }
}

function table(pattern: RegExp): readonly boolean[] {
  return Array.from({ length: 256 }, (_, code) => pattern.test(String.fromCharCode(code)))
}

// By code.
const isBlank = table(/[ \t\r\n\f\v]/)
const isQuote = table(/["'`]/)
const isLetterOrDigit = table(/[0-9A-Za-z]/)
/** What ends a word without quotes, to Gson. */
const endsWord = table(/[/\\;#={}[\]:,\s"'`&]/)

function lowerCase(code: number): number {
  return code >= 0x41 && code <= 0x5a ? code + 0x20 : code
}

/** Bytes as text, without the escapes of JSON and of JavaScript. */
function decoded(bytes: string): string {
  const text = Buffer.from(bytes, 'latin1').toString()
  return text.replace(
    /\\(?:u([0-9a-f]{4})|u\{([0-9a-f]{1,6})\}|x([0-9a-f]{2})|([^]))/gi,
    (_, unit?: string, point?: string, byte?: string, other?: string) => {
      const hex = unit ?? byte
      if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
      if (point !== undefined) return String.fromCodePoint(Math.min(Number.parseInt(point, 16), 0x10_ffff))
      return other ?? ''
    },
  )
}
