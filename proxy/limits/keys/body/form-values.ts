import { isUtf8 } from 'node:buffer'
import { decodedText } from '../../../request/values/lenient-text.ts'
import { unescapedBytes } from '../../../request/values/unescaped.ts'
import { NextCharacter } from '../../../request/values/next-character.ts'
import { FoundLists, type Findings } from './found-values.ts'
import { readPartOf, UnusualBytes } from './unusual-bytes.ts'
import type { BodyNames } from './names/body-names.ts'
import type { FormNames, MatchedRules } from './names/form-names.ts'

/** Maximum names to compare that have non-ASCII characters, broken or double escapes, or an equals sign in brackets. */
const MAX_UNUSUAL_NAMES = 256

/** Maximum fields to read. ASP.NET takes as many; PHP, Django, Express and Tomcat take 1000. */
const MAX_FIELDS = 1024

/** Maximum spellings of values to read, of which those of a form may be read in at most `MAX_READINGS` ways. */
const MAX_FORM_VALUES = 64

const space = 0x20
const percent = 0x25
const ampersand = 0x26
const plus = 0x2b
const semicolon = 0x3b
const equalsSign = 0x3d
const closingBracket = 0x5d
const lowerD = 0x64

/**
 * Reads the values of fields in a form (`application/x-www-form-urlencoded`) or a query, in every way in which some backend could. Fields
 * are separated by `&`, and for some backends by `;`. If a field is repeated, some backends take the first value, others the last.
 *
 * @param text one character per byte
 * @returns the findings for each name, all cut if the text has more than `MAX_FIELDS` fields
 */
export function readFormValues(text: string, names: BodyNames): Findings[] {
  const search = new FieldSearch(text, names)
  const ampersands = new NextCharacter(text, ampersand)
  for (let start = 0; start <= text.length && !search.found.isCut;) {
    const end = ampersands.from(start)
    search.readField(start, end)
    start = end + 1
  }
  return search.found.findings(1, () => undefined)
}

class FieldSearch {
  readonly found: FoundLists
  readonly #text: string
  readonly #names: FormNames
  readonly #semicolons: NextCharacter
  /** The next `=` in fields, and in the pieces between semicolons. Each is searched from left to right. */
  readonly #equals: NextCharacter
  readonly #equalsInPieces: NextCharacter
  /** The values found, by name. Those of members of models have a `&` before them, which no value contains. */
  readonly #known: readonly Set<string>[]
  /** The alternative decodings, by value. */
  readonly #readings = new Map<string, readonly string[]>()
  readonly #bytes = new UnusualBytes()
  #unusual = 0
  #fields = 0

  constructor(text: string, names: BodyNames) {
    this.#text = text
    this.#names = names.form
    this.found = new FoundLists(names.count, MAX_FORM_VALUES, true)
    this.#known = Array.from({ length: names.count }, () => new Set())
    this.#semicolons = new NextCharacter(text, semicolon)
    this.#equals = new NextCharacter(text, equalsSign)
    this.#equalsInPieces = new NextCharacter(text, equalsSign)
  }

  /** Reads a field, and the pieces that it has for readers that accept semicolons as separators. */
  readField(start: number, end: number): void {
    this.#readPair(start, end, this.#equals)
    let to = this.#semicolons.from(start)
    if (to >= end) return
    for (let from = start; from <= end && !this.found.isCut; to = this.#semicolons.from(from)) {
      to = Math.min(to, end)
      this.#readPair(from, to, this.#equalsInPieces)
      from = to + 1
    }
  }

  #readPair(from: number, end: number, signs: NextCharacter): void {
    let start = from
    // h3 skips equals signs before a name.
    while (start < end && this.#text.charCodeAt(start) === equalsSign) start++
    const equals = signs.from(start)
    if (equals >= end) return
    if (++this.#fields > MAX_FIELDS) return this.found.cutAll()
    this.#add(this.#rulesOf(start, equals), equals + 1, end)
    if (signs === this.#equals && equals + 1 < end)
      this.#add(this.#names.ofModel(this.#text, start, equals), equals + 1, end, true)
    // For qs, the name of `user[a=b]=1` ends after the bracket.
    let after = signs.from(equals + 1)
    while (after < end && !this.#endsBracket(after)) after = signs.from(after + 1)
    if (after < end && this.#takeUnusual()) this.#add(this.#rulesOf(start, after), after + 1, end)
  }

  #endsBracket(end: number): boolean {
    const last = this.#text.charCodeAt(end - 1)
    if (last === closingBracket) return true
    return (last | 0x20) === lowerD && this.#text.slice(end - 3, end).toUpperCase() === '%5D'
  }

  #rulesOf(start: number, end: number): MatchedRules {
    const matched = this.#names.ofSent(this.#text, start, end)
    if (matched !== undefined) return matched
    return this.#takeUnusual()
      ? this.#names.ofDecoded(decodedText(this.#text.slice(start, end), false))
      : noRules
  }

  /** Takes one of the comparisons. Returns false, and refuses the request, if there are no more. */
  #takeUnusual(): boolean {
    if (++this.#unusual > MAX_UNUSUAL_NAMES) this.found.cutAll()
    return !this.found.isCut
  }

  #add(names: MatchedRules, start: number, end: number, isExtra = false): void {
    if (names.length === 0 || start >= end || this.found.isCutForAll(names)) return
    const text = this.#text.slice(start, end)
    const id = isExtra ? `&${text}` : text
    const added = names.filter((name) => this.#known[name]?.has(id) === false)
    if (added.length === 0) return
    const others = this.#otherReadings(text)
    for (const name of added) {
      this.#known[name]?.add(id)
      this.found.add(name, text, 0, 0, isExtra)
      if (others) for (const other of others) this.found.add(name, other, 0, 0, isExtra)
      else this.found.cut(name)
    }
  }

  /** Returns undefined if a request has used up the bytes that are decoded for it. */
  #otherReadings(sent: string): readonly string[] | undefined {
    if (!sent.includes('%') && !beyondAscii.test(sent)) return none
    const text = readPartOf(sent)
    const known = this.#readings.get(text)
    if (known) return known
    if (!this.#bytes.take(text.length)) return undefined
    const readings = otherReadings(text)
    this.#readings.set(text, readings)
    return readings
  }
}

const noRules: MatchedRules = []
const beyondAscii = /[\x80-\xff]/
const escapedBeyondAscii = /%(?:25)*[89a-f]/i

/** Returns alternative readings of a text, in which other escapes remain. */
function otherReadings(text: string): readonly string[] {
  const long = withoutShortEscapes(text)
  const others = [...readingsInLatin1(text), ...readingsOfNode(text)]
  // CherryPy reads short escapes too, and drops the `%` of those that it cannot read: `an%na` is `anna`.
  const whole = long.includes('%') ? long.replace(brokenEscape, '') : long
  return [...others, ...new Set([long, whole])].filter((reading) => reading !== text)
}

const brokenEscape = /%(?![\da-f]{2})/gi

/**
 * Returns the reading of `node:querystring` and `URLSearchParams`. If one escape of a value cannot be decoded, they take the lowest byte of
 * each of its characters: `ı%` is `1%`. Browsers escape these characters.
 */
function readingsOfNode(text: string): readonly string[] {
  if (!text.includes('%') || !beyondAscii.test(text)) return none
  const characters = Buffer.from(text, 'latin1').toString()
  return [Buffer.from(characters, 'latin1').toString('latin1')]
}

/**
 * Decodes escapes of one digit, as WebOb and CherryPy do before a blank, another escape or the end of the text: `%4%31` is `\x041`. Works
 * on bytes, because a regular expression takes ten times as long for a thousand escapes.
 */
function withoutShortEscapes(text: string): string {
  if (!text.includes('%')) return text
  const bytes = Buffer.from(text, 'latin1')
  let end = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    const length = byte === percent ? shortEscapeLength(bytes, at) : 0
    if (length === 0) bytes[end++] = byte
    else {
      bytes[end++] = Math.max(digitOf(bytes[at + 1]), digitOf(bytes[at + 2]))
      at += length - 1
    }
  }
  return end === bytes.length ? text : bytes.toString('latin1', 0, end)
}

/** The length of a one-digit escape at this index, or 0. */
function shortEscapeLength(bytes: Buffer, at: number): 0 | 2 | 3 {
  const [first, second] = [bytes[at + 1], bytes[at + 2]]
  if (isBlank(first)) return digitOf(second) === noDigit ? 0 : 3
  if (digitOf(first) === noDigit) return 0
  if (second === percent || second === undefined) return 2
  return isBlank(second) ? 3 : 0
}

function isBlank(byte: number | undefined): boolean {
  return byte === space || byte === plus || (byte !== undefined && byte >= 0x09 && byte <= 0x0d)
}

const noDigit = -1

/** The value of a hexadecimal digit, or `noDigit`. */
function digitOf(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : noDigit
}

/** Returns the text as readers see it that take its bytes as Latin-1, in UTF-8. */
function readingsInLatin1(text: string): readonly string[] {
  const isRaw = beyondAscii.test(text)
  if (!isRaw && !escapedBeyondAscii.test(text)) return none
  // Browsers escape these bytes. busboy reads them as Latin-1, and escapes as UTF-8.
  const raw = isRaw ? [inUtf8(text)] : none
  const bytes = unescapedBytes(text, false)
  // bottle, and servlets of Tomcat 9, also read escapes as Latin-1. Browsers escape UTF-8.
  return isUtf8(bytes) ? raw : [...raw, inUtf8(bytes.toString('latin1'))]
}

function inUtf8(text: string): string {
  return Buffer.from(text).toString('latin1')
}

const none: readonly string[] = []
