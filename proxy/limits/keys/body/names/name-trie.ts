import { foldedCode, foldedText, NOTHING, SEVERAL } from './folded-letters.ts'

const backslash = 0x5c
const lowerU = 0x75
const lowerX = 0x78
const openingBrace = 0x7b
const closingBrace = 0x7d

/** The state before the first letter, and the state of texts that are not the beginning of a name. */
export const ROOT = 1
export const DEAD = 0

const NO_SYMBOL = 0xffff

/** The escapes that a name may have: those of JSON, or those of JavaScript, where malformed ones are literal characters. */
export type Escapes = 'json' | 'javascript'

/** Compares a text with many names at the cost of one. The names are in the form of `foldedLetters`. */
export class NameTrie {
  /** The index of the name that ends at each state, or undefined. */
  readonly ends: readonly (number | undefined)[]
  readonly #next: Int32Array
  readonly #symbols: ReadonlyMap<number, number>
  /** The symbol of each ASCII character, which may be in any case; `NO_SYMBOL` if the character is ignored. */
  readonly #asciiSymbols: Uint16Array
  readonly #foldedSymbols: Uint16Array
  readonly #width: number
  /** Whether some name has a letter beyond the basic plane. Otherwise such a letter in a text ends the search. */
  readonly #hasPairs: boolean

  /** @param names without duplicates */
  constructor(names: readonly string[]) {
    const codes = new Set(
      names.flatMap((name) => Array.from({ length: name.length }, (_, i) => name.charCodeAt(i))),
    )
    this.#symbols = new Map(Array.from(codes, (code, i) => [code, i + 1]))
    this.#asciiSymbols = Uint16Array.from({ length: 0x80 }, (_, code) => this.#symbols.get(code) ?? 0)
    this.#foldedSymbols = Uint16Array.from({ length: 0x80 }, (_, code) => {
      const folded = foldedCode(code)
      return folded === NOTHING ? NO_SYMBOL : (this.#symbols.get(folded) ?? 0)
    })
    this.#width = codes.size + 1
    this.#hasPairs = names.some((name) => /[\ud800-\udfff]/.test(name))
    const places = 2 + names.reduce((sum, name) => sum + name.length, 0)
    const ends: (number | undefined)[] = Array.from({ length: places }, () => undefined)
    this.#next = new Int32Array(places * this.#width)
    let last = ROOT
    for (const [index, name] of names.entries()) {
      let place = ROOT
      for (let i = 0; i < name.length; i++) {
        const edge = place * this.#width + this.#symbolOf(name.charCodeAt(i))
        if (this.#next[edge] === DEAD) this.#next[edge] = ++last
        place = this.#next[edge] ?? DEAD
      }
      ends[place] ??= index
    }
    this.ends = ends
  }

  /** @param code the code of a letter or a digit, from `foldedCode` */
  step(place: number, code: number): number {
    // No state has a transition for the symbol 0.
    return this.#next[place * this.#width + this.#symbolOf(code)] ?? DEAD
  }

  /** @param code the code of an ASCII character, in any case */
  stepAscii(place: number, code: number): number {
    const symbol = this.#foldedSymbols[code] ?? 0
    return symbol === NO_SYMBOL ? place : (this.#next[place * this.#width + symbol] ?? DEAD)
  }

  #symbolOf(code: number): number {
    return (code < 0x80 ? this.#asciiSymbols[code] : this.#symbols.get(code)) ?? 0
  }

  /**
   * Follows the name in a range of a text by its letters and digits, decoding escapes, and returns the state. Copies nothing, because there
   * may be thousands of names.
   *
   * @param text one character per byte of UTF-8
   */
  follow(text: string, start: number, end: number, escapes: Escapes): number {
    let place = ROOT
    let units: EscapedUnits | undefined
    for (let at = start; at < end && place !== DEAD;) {
      const code = text.charCodeAt(at++)
      if (code === backslash || code > 0x7f) {
        units ??= new EscapedUnits(text, end, escapes)
        place = this.#stepTo(place, units.read(at - 1))
        at = units.after
        continue
      }
      place = this.stepAscii(place, code)
    }
    return place
  }

  #stepTo(place: number, code: number): number {
    const folded = foldedCode(code)
    if (folded === NOTHING) return place
    if (folded !== SEVERAL) return this.step(place, folded)
    if (code > 0xffff && !this.#hasPairs) return DEAD
    const letters = foldedText(code)
    let to = place
    for (let i = 0; i < letters.length; i++) to = this.step(to, letters.charCodeAt(i))
    return to
  }
}

/** U+FFFD, which is not a letter, for invalid UTF-8 and for lone surrogates. */
const replacement = 0xfffd

/** Reads non-ASCII and escaped characters. */
class EscapedUnits {
  /** The index after the character that was read. */
  after = 0
  readonly #text: string
  readonly #end: number
  readonly #escapes: Escapes

  constructor(text: string, end: number, escapes: Escapes) {
    this.#text = text
    this.#end = end
    this.#escapes = escapes
  }

  /** Returns the code of the character at this index, which begins with a backslash or a non-ASCII byte. */
  read(at: number): number {
    const code = this.#text.charCodeAt(at)
    if (code !== backslash) return this.#readUtf8(code, at + 1)
    if (at + 1 >= this.#end) {
      this.after = at + 1
      return replacement
    }
    const escape = this.#text.charCodeAt(at + 1)
    const isLoose = this.#escapes === 'javascript'
    if ((isLoose ? escape | 0x20 : escape) === lowerU) {
      const unit = hexAt(this.#text, at + 2, at + 6, this.#end)
      if (unit >= 0) return this.#readUnit(unit, at + 6)
      const point = isLoose ? this.#readPoint(at + 2) : -1
      if (point >= 0) return point
    }
    if (isLoose && (escape | 0x20) === lowerX) {
      const byte = hexAt(this.#text, at + 2, at + 4, this.#end)
      this.after = at + 4
      if (byte >= 0) return byte
    }
    this.after = at + 2
    // `\n` is a line feed in JSON. Lenient readers of other dialects read it as an `n`.
    if (!isLoose) return replacement
    return escape > 0x7f ? this.#readUtf8(escape, at + 2) : escape
  }

  /** Reads a UTF-16 code unit, and the other half of its surrogate pair, if that follows. */
  #readUnit(unit: number, after: number): number {
    this.after = after
    if (unit < 0xd800 || unit > 0xdfff) return unit
    if (unit > 0xdbff || this.#text.charCodeAt(after) !== backslash) return replacement
    const escape = this.#text.charCodeAt(after + 1)
    const low = escape === lowerU ? hexAt(this.#text, after + 2, after + 6, this.#end) : -1
    if (low < 0xdc00 || low > 0xdfff) return replacement
    this.after = after + 6
    return 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00)
  }

  /** `\u{65}` */
  #readPoint(at: number): number {
    if (this.#text.charCodeAt(at) !== openingBrace) return -1
    let close = at + 1
    while (close < this.#end && close < at + 8 && this.#text.charCodeAt(close) !== closingBrace) close++
    if (close >= this.#end || close === at + 1 || this.#text.charCodeAt(close) !== closingBrace) return -1
    this.after = close + 1
    return Math.min(hexAt(this.#text, at + 1, close, this.#end), 0x10_ffff)
  }

  #readUtf8(first: number, after: number): number {
    this.after = after
    const more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc2 ? 1 : 0
    if (more === 0 || first > 0xf4) return replacement
    let code = first & (0x3f >> more)
    for (let at = after; at < after + more; at++) {
      const next = at < this.#end ? this.#text.charCodeAt(at) : 0
      if (next >> 6 !== 2) return replacement
      code = (code << 6) | (next & 0x3f)
    }
    if (code < (minCodePoints[more] ?? 0) || (code >= 0xd800 && code <= 0xdfff) || code > 0x10_ffff)
      return replacement
    this.after = after + more
    return code
  }
}

/** The minimum code point that UTF-8 encodes with each number of continuation bytes. */
const minCodePoints = [0, 0x80, 0x800, 0x1_0000]

/** Reads a hexadecimal number; negative for any other text, and for one that would end after `limit`. */
export function hexAt(text: string, start: number, end: number, limit: number): number {
  if (end > limit) return -1
  let value = 0
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at)
    const lower = code | 0x20
    if (code >= 0x30 && code <= 0x39) value = value * 16 + code - 0x30
    else if (lower >= 0x61 && lower <= 0x66) value = value * 16 + lower - 0x57
    else return -1
  }
  return value
}
