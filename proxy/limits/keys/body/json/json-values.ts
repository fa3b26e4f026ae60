import { FoundLists, MAX_VALUES, type Findings } from '../found-values.ts'
import type { BodyNames } from '../names/body-names.ts'
import { MAX_FIELDS, type JsonState, type JsonStates } from '../names/json-states.ts'

// Not imported: V8 reads an imported constant anew at each use, which makes a loop over bytes up to 40 % slower.
const quote = 0x22
const comma = 0x2c
const colon = 0x3a
const openingBracket = 0x5b
const backslash = 0x5c
const closingBracket = 0x5d
const lowerU = 0x75
const openingBrace = 0x7b
const closingBrace = 0x7d

/** Returned if the text ends within a string or a word. */
const CUT = -2

/** Stands for the index of the next item in an object, which has no items. */
const NO_ARRAY = -1

/** What the grammar allows next. */
type Expected = 'value' | 'value or end' | 'name or end' | 'name' | 'colon' | 'comma or end' | 'nothing'

/**
 * Reads the values of members in a JSON text, in every way in which some backend could: names are compared as in `findMember`; if a name
 * repeats, each value counts; an array on the way to a value, or in its place, stands for each of its items. `__proto__` is passed through,
 * because merging objects copies its members. Members of the object at the top whose names are numbers are elements of a batch (tRPC). An
 * array in place of an object also stands for its members, in any order, for serde; these values are extra.
 *
 * Takes a single pass over any text for all names, and memory only for open brackets and for the values.
 *
 * @param text one character per byte
 * @param isWhole false if the text is truncated
 * @returns the findings for each name; undefined if the text is not valid JSON (RFC 8259), because readers of other dialects find other
 *   values in it
 */
export function readJsonValues(text: string, names: BodyNames, isWhole = true): Findings[] | undefined {
  return new JsonWalk(text, names).read(isWhole)
}

class JsonWalk {
  readonly #text: string
  readonly #names: JsonStates
  readonly #found: FoundLists
  /** The state of each open object or array, and the index of its next item or `NO_ARRAY`. */
  readonly #states: JsonState[] = []
  readonly #places: number[] = []
  #expected: Expected = 'value'
  /** The state of the next value. */
  #state: JsonState
  /** The number of array items so far, by set of names. */
  readonly #items: number[]
  #element = 0
  #elements = 1
  #isBatch = false
  readonly #hasContainer: boolean[]

  constructor(text: string, names: BodyNames) {
    this.#text = text
    this.#names = names.json
    this.#found = new FoundLists(names.count, MAX_VALUES)
    this.#state = this.#names.first
    this.#items = Array.from(this.#names.sets, () => 0)
    this.#hasContainer = Array.from({ length: names.count }, () => false)
  }

  read(isWhole: boolean): Findings[] | undefined {
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
    const elements = this.#isBatch ? Math.max(this.#elements, 1) : 1
    return this.#found.findings(elements, (name) => (this.#hasContainer[name] ? 'value' : undefined))
  }

  /** Returns the index after the token that begins here; -1 if the token is not allowed here. */
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
        const isArray = this.#places[this.#places.length - 1] !== NO_ARRAY
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

  /** Prepares for the next value, an item of the open array. */
  #openItem(): void {
    const depth = this.#places.length - 1
    const state = this.#states[depth]
    if (!state) return
    this.#state = state
    if (state.isOff) return
    const place = this.#places[depth] ?? 0
    this.#places[depth] = place + 1
    this.#items[state.set] = (this.#items[state.set] ?? 0) + 1
    this.#state = state.ofItem(place)
    if (depth === 0) this.#element = this.#elements
  }

  #takeName(code: number, at: number): number {
    if (code !== quote) return -1
    const end = endOfString(this.#text, at)
    if (end < 0) return end
    const state = this.#states[this.#states.length - 1]
    const index = this.#states.length === 1 ? this.#indexOf(at + 1, end - 1) : undefined
    if (index !== undefined) this.#openCall(index)
    else if (state) this.#state = state.afterName(this.#text, at + 1, end - 1)
    this.#expected = 'colon'
    return end
  }

  /** Returns the number that a name consists of; undefined for any other name. */
  #indexOf(start: number, end: number): number | undefined {
    const first = this.#text.charCodeAt(start)
    if (first !== backslash && (first < 0x30 || first > 0x39)) return undefined
    const name = this.#text.slice(start, end)
    return isIndex.test(name) ? Number(textOf(name)) : undefined
  }

  /** Prepares for a member such as `"0"` of the object at the top: an element of a batch, as tRPC has them. */
  #openCall(index: number): void {
    const state = this.#states[0]
    if (!state) return
    if (!this.#isBatch) this.#elements = 0
    this.#isBatch = true
    this.#element = this.#elements
    this.#items[state.set] = (this.#items[state.set] ?? 0) + 1
    this.#state = state.ofItem(index)
  }

  #takeValue(code: number, at: number): number {
    if (code === openingBrace || code === openingBracket) return this.#open(code === openingBracket, at)
    this.#expected = this.#states.length === 0 ? 'nothing' : 'comma or end'
    const extra = this.#extraNames()
    const isFound = !this.#found.isCutForAll(this.#state.found) || !this.#found.isCutForAll(extra)
    if (code === quote) {
      const end = endOfString(this.#text, at)
      if (isFound && end > 0) this.#add(textOf(this.#text.slice(at + 1, end - 1)), extra)
      return end
    }
    const end = endOfWord(this.#text, at)
    // The word may be truncated.
    if (end === this.#text.length && this.#states.length > 0) return CUT
    if (end === at + 1 && code >= 0x30 && code <= 0x39 && !isFound) return end
    const word = this.#text.slice(at, end)
    if (!isWord.test(word)) return -1
    if (isFound && word !== 'null') for (const text of wordTexts(word)) this.#add(text, extra)
    return end
  }

  /** The names whose value this is if an item of an array is taken for a member. */
  #extraNames(): readonly number[] {
    const { foundByPlace } = this.#state
    const depth = this.#states.length - 1
    const place = this.#places[depth] ?? NO_ARRAY
    const members = place === NO_ARRAY || place > MAX_FIELDS ? undefined : this.#states[depth]?.members
    if (!members || members.length === 0) return foundByPlace
    return foundByPlace.length === 0 ? members : [...new Set([...foundByPlace, ...members])]
  }

  #open(isArray: boolean, at: number): number {
    const depth = this.#states.length
    if (depth === 0 && isArray) {
      this.#isBatch = true
      this.#elements = 0
    } else if (depth === 1 && this.#isBatch) this.#elements++
    if (depth === MAX_DEPTH) return -1
    for (const name of this.#state.found) this.#hasContainer[name] = true
    this.#states.push(this.#state)
    this.#places.push(isArray ? 0 : NO_ARRAY)
    this.#expected = isArray ? 'value or end' : 'name or end'
    return at + 1
  }

  #close(at: number): number {
    this.#states.pop()
    this.#places.pop()
    this.#expected = this.#states.length === 0 ? 'nothing' : 'comma or end'
    return at + 1
  }

  #add(text: string, extra: readonly number[]): void {
    if (text === '') return
    const { found } = this.#state
    // A value directly in a batch is not one of its elements.
    const element = Math.min(this.#element, Math.max(0, this.#elements - 1))
    for (const name of found) this.#found.add(name, text, element, this.#itemOf(name))
    for (const name of extra)
      if (!found.includes(name)) this.#found.add(name, text, element, this.#itemOf(name), true)
  }

  /** Items of different arrays on the way to a name are different items. */
  #itemOf(name: number): number {
    let item = 0
    for (const [set, items] of this.#items.entries())
      if (items > 0 && this.#names.sets[set]?.includes(name)) item += items
    return item
  }
}

/** Digits, each of which may be escaped. */
const isIndex = /^(?:\d|\\u003\d)+$/
/** Maximum nesting depth, as in Jackson and Python. Deeper texts are read as invalid JSON, at any depth. */
const MAX_DEPTH = 1000
/** RFC 8259 sections 3 and 6. */
const isWord = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/

/** The index after the string that begins here; -1 if it is not valid, `CUT` if it has no end. */
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

/** Returns the content of a valid string as UTF-8, one character per byte. Lone surrogates become U+FFFD. */
function textOf(content: string): string {
  if (!content.includes('\\')) return content
  const text = JSON.parse(`"${inUnicode(content)}"`) as string
  return isAscii.test(text) ? text : Buffer.from(text).toString('latin1')
}

function inUnicode(bytes: string): string {
  return isAscii.test(bytes) ? bytes : Buffer.from(bytes, 'latin1').toString()
}

const isAscii = /^[\0-\x7f]*$/

/** Returns a number as sent, and as converted to 64-bit floating point. */
export function wordTexts(word: string): readonly string[] {
  const converted = String(Number(word))
  const texts = converted === word || converted === 'NaN' ? [word] : [word, converted]
  return Number.isSafeInteger(Math.trunc(Number(word))) ? texts : [...texts, Number(word).toExponential()]
}
