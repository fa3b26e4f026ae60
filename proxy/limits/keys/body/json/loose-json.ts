import { NextCharacter } from '../../../../request/values/next-character.ts'
import { FoundLists, RemainingTexts, type Findings } from '../found-values.ts'
import { wordTexts } from './json-values.ts'
import type { BodyNames, LastNames } from '../names/body-names.ts'
import { hexAt } from '../names/name-trie.ts'

// Not imported: V8 reads an imported constant anew at each use, which makes a loop over bytes up to 40 % slower.
const quote = 0x22
const colon = 0x3a
const equalsSign = 0x3d
const greaterThan = 0x3e
const openingBracket = 0x5b
const upperU = 0x55
const upperX = 0x58
const backslash = 0x5c
const closingBracket = 0x5d
const lowerU = 0x75
const lowerX = 0x78
const openingBrace = 0x7b
const closingBrace = 0x7d

/**
 * Finds the values that lenient parsers may find in a text that is not valid JSON: with comments, unquoted names, single quotes, `=` for a
 * colon, trailing commas, several texts in a row, or other text after them (Json.NET, Gson, JSON5, Go's decoder). Everything that looks
 * like a member counts as one, at any depth, because such parsers do not agree on the nesting. Each value is a separate item. Only the last
 * name of a path is searched.
 *
 * @param text one character per byte
 * @param where where separators of members count; in valid JSON, its own separators are those outside strings
 */
export function readLooseJson(
  text: string,
  names: BodyNames,
  where: 'anywhere' | 'outside strings' = 'anywhere',
): Findings[] {
  const search = new LooseSearch(names)
  search.read(text, where === 'outside strings')
  const plain = where === 'anywhere' ? withoutComments(text) : text
  if (plain !== text) search.readAgain(plain)
  return search.found.findings(1, () => 'syntax')
}

const isNumber = /^[-+]?\.?\d/

/** Maximum bytes per letter of a name, such as `\u0065`; of a value; and of a container. Maximum number of containers to read. */
const BYTES_PER_LETTER = 6
const MAX_CONTENT = 4 * 1024
const MAX_CONTAINER = 2 * 1024
const MAX_CONTAINERS = 32
/** Maximum number of values to read. A valid text may have more, because its values do not overlap. */
const MAX_LOOSE_VALUES = 256

class LooseSearch {
  readonly found: FoundLists
  readonly #bodyNames: BodyNames
  readonly #names: LastNames
  readonly #containers: number[]

  constructor(names: BodyNames) {
    this.#bodyNames = names
    this.#names = names.last
    this.found = new FoundLists(names.count, MAX_LOOSE_VALUES)
    this.#containers = Array.from({ length: names.count }, () => 0)
  }

  /** Reads another form of the text, such as one without comments. Adds the values that it has more often than the first one. */
  readAgain(text: string): void {
    const again = new LooseSearch(this.#bodyNames)
    again.read(text)
    for (let name = 0; name < this.#bodyNames.count; name++) {
      const remaining = new RemainingTexts(this.found.textsOf(name))
      if (again.found.isCutFor(name)) this.found.cut(name)
      for (const found of again.found.textsOf(name)) if (!remaining.take(found)) this.#push(found, [name])
    }
  }

  read(text: string, skipsStrings = false): void {
    const colons = new NextCharacter(text, colon)
    const equals = new NextCharacter(text, equalsSign)
    const quotes = new NextCharacter(text, quote)
    let stringEnd = 0
    for (let at = 0; !this.found.isCut; at++) {
      at = Math.min(colons.from(at), equals.from(at))
      if (at === text.length) return
      if (skipsStrings) {
        for (let start = quotes.from(stringEnd); start < at; start = quotes.from(stringEnd))
          stringEnd = Math.min(endOfString(text, start), text.length)
        if (at < stringEnd) {
          at = stringEnd - 1
          continue
        }
      }
      if (isNoName[text.charCodeAt(at - 1)]) continue
      const names = this.#namesBefore(text, at)
      if (names.length > 0)
        this.#readValue(text, text.charCodeAt(at + 1) === greaterThan ? at + 2 : at + 1, names)
    }
  }

  /** Returns the numbers of the name before a separator. The name may have quotes, and blanks after it. */
  #namesBefore(text: string, separator: number): readonly number[] {
    const { trie, paths, lengths, maxLength } = this.#names
    let hasEscape = false
    let end = separator
    while (end > 0 && isBlank[text.charCodeAt(end - 1)]) end--
    const closing = text.charCodeAt(end - 1)
    const isQuoted = isQuote[closing] === true
    if (isQuoted) end--
    const first = Math.max(0, end - maxLength * BYTES_PER_LETTER - 8)
    let start = end
    for (; start > first; start--) {
      const code = text.charCodeAt(start - 1)
      if (code === backslash) hasEscape = true
      else if (isQuoted ? code === closing : endsWord[code]) break
    }
    if (isQuoted && (start === 0 || text.charCodeAt(start - 1) !== closing)) return none
    let name = trie.ends[trie.follow(text, start, end, 'javascript')]
    if (hasEscape) name ??= trie.ends[trie.follow(text, start, end, 'json')]
    if (name === undefined) return none
    const isTooLong = isQuoted && end - start > (lengths[name] ?? 0) * BYTES_PER_LETTER + 8
    return isTooLong ? none : (paths[name] ?? none)
  }

  #readValue(text: string, start: number, names: readonly number[]): void {
    if (this.found.isCutForAll(names)) return
    let at = start
    while (isBlank[text.charCodeAt(at)]) at++
    const first = text.charCodeAt(at)
    const isContainer = first === openingBrace || first === openingBracket
    const left = names.filter((name) => {
      if (isContainer) this.#countContainer(name)
      return !this.found.isCutFor(name)
    })
    if (left.length === 0) return
    if (isContainer) this.#readContainer(text.slice(at, at + MAX_CONTAINER), left)
    else this.#addToken(text, at, left)
  }

  #countContainer(name: number): void {
    const containers = (this.#containers[name] ?? 0) + 1
    this.#containers[name] = containers
    if (containers > MAX_CONTAINERS) this.found.cut(name)
  }

  #readContainer(text: string, names: readonly number[]): void {
    let depth = 0
    for (let at = 0; at < text.length && names.some((name) => !this.found.isCutFor(name));) {
      const code = text.charCodeAt(at)
      if (code === openingBrace || code === openingBracket) depth++
      else if ((code === closingBrace || code === closingBracket) && --depth === 0) return
      at = isQuote[code] || !endsWord[code] ? this.#addToken(text, at, names) : at + 1
    }
  }

  /** Returns the index after the string or word that begins at `start`. */
  #addToken(text: string, start: number, names: readonly number[]): number {
    const opening = text.charCodeAt(start)
    let end = start
    if (isQuote[opening]) {
      const last = Math.min(text.length, start + 1 + MAX_CONTENT)
      for (end = start + 1; end < last && text.charCodeAt(end) !== opening; end++)
        if (text.charCodeAt(end) === backslash) end++
      this.#add(text.slice(start + 1, end), names)
      return end + 1
    }
    while (end < text.length && !endsWord[text.charCodeAt(end)]) end++
    const found = text.slice(start, end)
    if (isNumber.test(found)) for (const text of wordTexts(found)) this.#add(text, names)
    else if (found !== 'null') this.#add(found, names)
    return Math.max(end, start + 1)
  }

  #add(sent: string, names: readonly number[]): void {
    const content = sent.slice(0, MAX_CONTENT)
    if (content === '') return
    for (const text of content.includes('\\') ? readingsOf(content) : [content]) this.#push(text, names)
  }

  #push(text: string, names: readonly number[]): void {
    for (const name of names) this.found.add(name, text, 0, this.found.countOf(name))
  }
}

const none: readonly number[] = []

const slash = 0x2f
const asterisk = 0x2a
const numberSign = 0x23
const blank = 0x20

/** Replaces each comment with a space. Skips strings, in which no comment begins. */
function withoutComments(text: string): string {
  if (!mayHaveComments.test(text)) return text
  const plain = Buffer.allocUnsafe(text.length)
  let length = 0
  let hasStrings = true
  for (let at = 0; at < text.length;) {
    const end = endOfComment(text, at)
    if (end > at) {
      plain[length++] = blank
      at = end
      continue
    }
    let stringEnd = text.charCodeAt(at) === quote && hasStrings ? endOfString(text, at) : at + 1
    // The text ends after a backslash, so neither this quote nor any later one begins a string.
    if (stringEnd > text.length) {
      hasStrings = false
      stringEnd = at + 1
    }
    while (at < stringEnd) plain[length++] = text.charCodeAt(at++)
  }
  return plain.toString('latin1', 0, length)
}

const mayHaveComments = /\/[*/]|#/

/** Returns the index after the comment that begins at `start`, not including a line end; `start` if no comment begins there. */
function endOfComment(text: string, start: number): number {
  const code = text.charCodeAt(start)
  const next = text.charCodeAt(start + 1)
  if (code === slash && next === asterisk) {
    const end = text.indexOf('*/', start + 2)
    return end === -1 ? text.length : end + 2
  }
  if (code !== numberSign && !(code === slash && next === slash)) return start
  let end = start
  while (end < text.length && text.charCodeAt(end) !== 0x0a && text.charCodeAt(end) !== 0x0d) end++
  return end
}

/** Returns the index after the string that begins at `start`; beyond the end of the text if that ends with an incomplete escape. */
function endOfString(text: string, start: number): number {
  let end = start + 1
  while (end < text.length && text.charCodeAt(end) !== quote)
    end += text.charCodeAt(end) === backslash ? 2 : 1
  return end < text.length ? end + 1 : end
}

function table(pattern: RegExp): readonly boolean[] {
  return Array.from({ length: 256 }, (_, code) => pattern.test(String.fromCharCode(code)))
}

// Indexed by character code.
const isBlank = table(/[ \t\r\n\f\v]/)
const isQuote = table(/["'`]/)
/** Characters that end an unquoted word for Gson. */
const endsWord = table(/[/\\;#={}[\]:,\s"'`&]/)

/** Characters that cannot end a name. */
const isNoName = table(/[{}[\],:=&;]/)

/** Returns the possible readings of a text with escapes, one character per byte. */
function readingsOf(content: string): ReadonlySet<string> {
  const readings = [decoded(content, false)]
  // Some parsers read `\n` as a line feed, others as the letter.
  if (/\\[bfnrt]/.test(content)) readings.push(decoded(content, true))
  // Ruby's parser reads `\x` as an `x`.
  if (content.includes('\\x'))
    readings.push(
      decoded(
        content.replace(/\\(\\|x)/g, (escape, of: string) => (of === 'x' ? of : escape)),
        true,
      ),
    )
  return new Set(readings.map((text) => Buffer.from(text).toString('latin1')))
}

/**
 * Converts bytes to text, and decodes the escapes of JSON and JavaScript.
 *
 * @param hasControls whether `\n` and similar escapes stand for control characters, as in JSON
 */
function decoded(bytes: string, hasControls: boolean): string {
  const text = Buffer.from(bytes, 'latin1').toString()
  // No character is longer than its escape. Matching each escape with a regular expression takes ten times as long.
  const units = new Uint16Array(text.length)
  let length = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code !== backslash || at + 1 === text.length) {
      units[length++] = code
      continue
    }
    const letter = text.charCodeAt(++at)
    const digits = letter === upperU || letter === lowerU ? 4 : letter === upperX || letter === lowerX ? 2 : 0
    const unit = digits > 0 ? hexAt(text, at + 1, at + 1 + digits, text.length) : -1
    if (unit >= 0) {
      units[length++] = unit
      at += digits
      continue
    }
    bracedPoint.lastIndex = at + 1
    const [braced = '', point = ''] = (digits === 4 && bracedPoint.exec(text)) || []
    if (braced === '') {
      units[length++] = (hasControls && controls.get(letter)) || letter
      continue
    }
    at += braced.length
    const character = String.fromCodePoint(Math.min(Number.parseInt(point, 16), 0x10_ffff))
    for (let i = 0; i < character.length; i++) units[length++] = character.charCodeAt(i)
  }
  return Buffer.from(units.buffer, 0, 2 * length).toString('utf16le')
}

/** `{1f600}` */
const bracedPoint = /\{([0-9a-f]{1,6})\}/iy

/** The code of each control character, by the code of the letter after the backslash. */
const controls: ReadonlyMap<number, number> = new Map(
  ['b\b', 'f\f', 'n\n', 'r\r', 't\t'].map((pair) => [pair.charCodeAt(0), pair.charCodeAt(1)]),
)
