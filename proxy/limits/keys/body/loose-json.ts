import { foldedName } from '../../../request/json/json-names.ts'
import { MAX_VALUES, type Findings, type FoundValue } from './found-values.ts'

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
  const plain = text.replace(comments, ' ')
  if (plain !== text) search.readAgain(plain)
  return { values: search.values, elements: 1, unread: 'syntax', isCut: search.isCut }
}

/** A string is taken whole: a comment cannot begin in it. */
const comments = /("(?:[^"\\]|\\[^])*")|\/\*[^]*?(?:\*\/|$)|\/\/[^\r\n]*|#[^\r\n]*/g

const separator = /[:=]/g
const blanks = ' \t\r\n\f\v'
const quotes = '"\'`'
/** What ends a word without quotes, to Gson. */
const endsWord = /[/\\;#={}[\]:,\s"'`&]/
/** Lengths that are looked at, so that nested text is not read again and again. */
const MAX_NAME = 6
const MAX_CONTAINER = 8 * 1024
const MAX_CONTAINERS = 64

class LooseSearch {
  readonly values: FoundValue[] = []
  isCut = false
  readonly #name: string
  #containers = 0

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
    for (const { index } of text.matchAll(separator)) {
      if (!this.#isNameBefore(text, index)) continue
      let at = index + 1
      if (text[at] === '>') at++
      this.#readValue(text, at)
      if (this.isCut) return
    }
  }

  #isNameBefore(text: string, end: number): boolean {
    let last = end
    while (last > 0 && blanks.includes(text.charAt(last - 1))) last--
    const quote = text.charAt(last - 1)
    const most = this.#name.length * MAX_NAME + 8
    if (quotes.includes(quote) && quote !== '') {
      const before = text.slice(Math.max(0, last - 1 - most), last - 1)
      const start = before.lastIndexOf(quote)
      return start !== -1 && this.#isName(before.slice(start + 1))
    }
    const before = text.slice(Math.max(0, last - most), last)
    return this.#isName(word.exec(before)?.[0] ?? '')
  }

  #isName(sent: string): boolean {
    if (sent.length < this.#name.length / 2) return false
    return foldedName(decoded(sent)) === this.#name
  }

  #readValue(text: string, start: number): void {
    let at = start
    while (at < text.length && blanks.includes(text.charAt(at))) at++
    const first = text.charAt(at)
    if (first !== '{' && first !== '[') {
      this.#addToken(text, at)
      return
    }
    if (++this.#containers > MAX_CONTAINERS) this.isCut = true
    else this.#readContainer(text.slice(at, at + MAX_CONTAINER))
  }

  #readContainer(text: string): void {
    let depth = 0
    for (let at = 0; at < text.length && !this.isCut;) {
      const character = text.charAt(at)
      if (character === '{' || character === '[') depth++
      else if ((character === '}' || character === ']') && --depth === 0) return
      const isToken = quotes.includes(character) || !endsWord.test(character)
      at = isToken ? this.#addToken(text, at) : at + 1
    }
  }

  /** Returns the place behind the string or the word that begins here. */
  #addToken(text: string, start: number): number {
    const quote = text.charAt(start)
    if (quote !== '' && quotes.includes(quote)) {
      let end = start + 1
      while (end < text.length && text.charAt(end) !== quote) end += text.charAt(end) === '\\' ? 2 : 1
      this.#add(text.slice(start + 1, end))
      return end + 1
    }
    let end = start
    while (end < text.length && !endsWord.test(text.charAt(end))) end++
    const found = text.slice(start, end)
    if (found !== 'null') this.#add(found)
    return Math.max(end, start + 1)
  }

  #add(content: string): void {
    if (content === '') return
    const text = content.includes('\\') ? Buffer.from(decoded(content)).toString('latin1') : content
    this.#push(text)
  }

  #push(text: string): void {
    const item = this.values.length
    if (item === MAX_VALUES) this.isCut = true
    else this.values.push({ text, element: 0, item })
  }
}

const word = /[\w$.\\\x80-\xff-]*$/

/** Bytes as text, without the escapes of JSON and of JavaScript. */
function decoded(bytes: string): string {
  const text = Buffer.from(bytes, 'latin1').toString()
  return text.replace(
    /\\(?:u([0-9a-f]{4})|u\{([0-9a-f]{1,6})\}|x([0-9a-f]{2})|([^]))/gi,
    (
      _,
      unit: string | undefined,
      point: string | undefined,
      byte: string | undefined,
      other: string | undefined,
    ) => {
      const hex = unit ?? byte
      if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
      if (point !== undefined) return String.fromCodePoint(Math.min(Number.parseInt(point, 16), 0x10_ffff))
      return other ?? ''
    },
  )
}
