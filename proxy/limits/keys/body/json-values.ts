import {
  backslash,
  closingBrace,
  closingBracket,
  colon,
  comma,
  openingBrace,
  openingBracket,
  quote,
} from '../../../request/json/json-bytes.ts'
import { foldedName, isNamed } from '../../../request/json/json-names.ts'
import { MAX_VALUES, type Findings, type FoundValue } from './found-values.ts'

/** The text ends within a string. */
const CUT = -2

/** Off the way to the values. */
const OFF = -1

/** What may come next. */
type Expected = 'value' | 'value or end' | 'name or end' | 'name' | 'colon' | 'comma or end' | 'nothing'

/**
 * The values of a member in a JSON text, as some backend could read them: names are compared as `findMember` does, of members of the
 * same name each value counts, and arrays on the way, and in place of a value, stand for each of their items. `__proto__` is
 * passed through, as objects that are merged get its members.
 *
 * One pass for any text, and memory only for open brackets and for the values.
 *
 * @param text a character for each byte
 * @param path names of members, one or more
 * @param isWhole false for the beginning of a text
 * @returns undefined if it is not valid JSON (RFC 8259): readers of other dialects find other things in it
 */
export function readJsonValues(text: string, path: readonly string[], isWhole = true): Findings | undefined {
  return new JsonWalk(text, path).read(isWhole)
}

class JsonWalk {
  readonly #text: string
  readonly #names: readonly string[]
  /** Of each level the names that lead on: that of the next one, and those of several written as one. */
  readonly #joined: readonly (readonly string[])[]
  readonly #values: FoundValue[] = []
  /** Of each open object or array how many names of the path lead to it, or `OFF`; and the place of its next item, or -1 for an object. */
  readonly #levels: number[] = []
  readonly #places: number[] = []
  #expected: Expected = 'value'
  /** Of the next value. */
  #level = 0
  #item = 0
  #element = 0
  #elements = 1
  #isBatch = false
  #hasContainer = false
  #unusual = 0
  #isCut = false

  constructor(text: string, path: readonly string[]) {
    this.#text = text
    this.#names = path.map(foldedName)
    this.#joined = this.#names.map((_, from) => {
      const left = this.#names.slice(from)
      return left.map((_, last) => left.slice(0, last + 1).join(''))
    })
  }

  read(isWhole: boolean): Findings | undefined {
    const text = this.#text
    for (let at = 0; at < text.length;) {
      const code = text.charCodeAt(at)
      if (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) {
        at++
        continue
      }
      at = this.#take(code, at)
      if (at === CUT && !isWhole) break
      if (at < 0) return undefined
    }
    if (isWhole && this.#expected !== 'nothing') return undefined
    const unread = this.#hasContainer ? 'value' : undefined
    return {
      values: this.#values,
      elements: this.#isBatch ? Math.max(this.#elements, 1) : 1,
      unread,
      isCut: this.#isCut,
    }
  }

  /** Returns the place behind the token that begins here; -1 if it cannot be here. */
  #take(code: number, at: number): number {
    switch (this.#expected) {
      case 'value or end':
        if (code === closingBracket) return this.#close(at)
        this.#openItem()
        return this.#takeValue(code, at)
      case 'value':
        return this.#takeValue(code, at)
      case 'name or end':
        if (code === closingBrace) return this.#close(at)
        return this.#takeName(code, at)
      case 'name':
        return this.#takeName(code, at)
      case 'colon':
        this.#expected = 'value'
        return code === colon ? at + 1 : -1
      case 'comma or end': {
        const isArray = (this.#places.at(-1) ?? OFF) !== OFF
        if (code === (isArray ? closingBracket : closingBrace)) return this.#close(at)
        if (code !== comma) return -1
        this.#expected = isArray ? 'value' : 'name'
        if (isArray) this.#openItem()
        return at + 1
      }
      case 'nothing':
        return -1
    }
  }

  /** The next value is an item of the array that is open. */
  #openItem(): void {
    const depth = this.#places.length - 1
    const place = this.#places[depth] ?? 0
    this.#places[depth] = place + 1
    const level = this.#levels[depth] ?? OFF
    if (level === OFF) {
      this.#level = OFF
      return
    }
    this.#item++
    const name = this.#names[level] ?? ''
    this.#level = isIndex.test(name) ? (name === String(place) ? level + 1 : OFF) : level
    if (depth === 0 && this.#isBatch) this.#element = this.#elements
  }

  #takeName(code: number, at: number): number {
    if (code !== quote) return -1
    const end = endOfString(this.#text, at)
    if (end < 0) return end
    const level = this.#levels.at(-1) ?? OFF
    this.#level =
      level === OFF || level === this.#names.length ? level : this.#levelBehind(level, at + 1, end - 1)
    this.#expected = 'colon'
    return end
  }

  #levelBehind(level: number, start: number, end: number): number {
    let sent: string | undefined
    // `user.email` is the member of `user` to whoever looks for a whole path first, such as lodash's `get`.
    for (const [at, name] of (this.#joined[level] ?? []).entries()) {
      const isSame = isNamed(this.#text, start, end, name)
      if (isSame) return level + at + 1
      if (isSame !== undefined) continue
      if (sent === undefined && ++this.#unusual > MAX_UNUSUAL_NAMES) this.#isCut = true
      sent ??= this.#isCut ? '' : foldedName(unescaped(this.#text.slice(start, end)))
      if (sent === name) return level + at + 1
      if (sent === 'proto') return level
    }
    return end - start === 9 && isNamed(this.#text, start, end, 'proto') ? level : OFF
  }

  #takeValue(code: number, at: number): number {
    if (code === openingBrace || code === openingBracket) return this.#open(code === openingBracket, at)
    this.#expected = this.#levels.length === 0 ? 'nothing' : 'comma or end'
    const isFound = this.#level === this.#names.length
    if (code === quote) {
      const end = endOfString(this.#text, at)
      if (isFound && end > 0) this.#add(textOf(this.#text.slice(at + 1, end - 1)))
      return end
    }
    const end = endOfWord(this.#text, at)
    // Perhaps only its beginning.
    if (end === this.#text.length && this.#levels.length > 0) return CUT
    const word = this.#text.slice(at, end)
    if (!isWord.test(word)) return -1
    if (isFound && word !== 'null') for (const text of wordTexts(word)) this.#add(text)
    return end
  }

  #open(isArray: boolean, at: number): number {
    if (this.#levels.length === 0 && isArray) {
      this.#isBatch = true
      this.#elements = 0
    } else if (this.#levels.length === 1 && this.#isBatch) this.#elements++
    if (this.#levels.length === MAX_DEPTH) return -1
    if (this.#level === this.#names.length) this.#hasContainer = true
    this.#levels.push(this.#level)
    this.#places.push(isArray ? 0 : OFF)
    this.#expected = isArray ? 'value or end' : 'name or end'
    return at + 1
  }

  #close(at: number): number {
    this.#levels.pop()
    this.#places.pop()
    this.#expected = this.#levels.length === 0 ? 'nothing' : 'comma or end'
    return at + 1
  }

  #add(text: string): void {
    if (text === '') return
    if (this.#values.length === MAX_VALUES) this.#isCut = true
    else this.#values.push({ text, element: this.#element, item: this.#item })
  }
}

/** Names with escapes or characters beyond ASCII that are compared at most: each takes a hundred times as long as others. */
const MAX_UNUSUAL_NAMES = 256
/** Objects and arrays within one another, to Jackson and Python: what nests deeper is read as broken JSON, at any depth. */
const MAX_DEPTH = 1000
const isIndex = /^\d+$/
/** RFC 8259 sections 3 and 6. */
const isWord = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/

/** The place behind the string that begins here; -1 if it is not valid, `CUT` if it has no end. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) return at + 1
    if (code < 0x20) return -1
    if (code !== backslash) continue
    at++
    if (at >= text.length) return CUT
    const escape = text.charCodeAt(at)
    if (escape === lowerU) {
      if (at + 4 >= text.length) return CUT
      if (!isHex4(text, at + 1)) return -1
      at += 4
    } else if (!isEscape[escape]) return -1
  }
  return CUT
}

const lowerU = 0x75
const isEscape: readonly (true | undefined)[] = Array.from({ length: 256 }, (_, code) =>
  '"\\/bfnrt'.includes(String.fromCharCode(code)) ? true : undefined,
)

function isHex4(text: string, start: number): boolean {
  for (let at = start; at < start + 4; at++) {
    const code = text.charCodeAt(at) | 0x20
    if (!(code >= 0x30 && code <= 0x39 && text.charCodeAt(at) >= 0x30) && !(code >= 0x61 && code <= 0x66))
      return false
  }
  return true
}

function endOfWord(text: string, start: number): number {
  let at = start
  while (at < text.length && !endsWord(text.charCodeAt(at))) at++
  return at
}

function endsWord(code: number): boolean {
  return (
    code <= 0x20 ||
    code === comma ||
    code === colon ||
    code === quote ||
    code === closingBrace ||
    code === closingBracket
  )
}

/** The content of a valid string, as bytes of UTF-8, a character for each. Halves of surrogate pairs are U+FFFD. */
function textOf(content: string): string {
  return content.includes('\\') ? Buffer.from(unescaped(content)).toString('latin1') : content
}

function unescaped(content: string): string {
  const text = Buffer.from(content, 'latin1').toString()
  return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
}

/** A number as it was sent, and as it is to whom all numbers have 64 bits. */
export function wordTexts(word: string): readonly string[] {
  const converted = String(Number(word))
  const texts = converted === word || converted === 'NaN' ? [word] : [word, converted]
  return Number.isSafeInteger(Math.trunc(Number(word))) ? texts : [...texts, Number(word).toExponential()]
}
