import { isUtf8 } from 'node:buffer'
import { decodedText } from '../../../request/values/lenient-text.ts'
import { unescapedBytes } from '../../../request/values/unescaped.ts'
import { NextCharacter } from '../../../request/values/next-character.ts'
import { FoundLists, type Findings } from './found-values.ts'
import type { BodyNames } from './names/body-names.ts'
import type { FormNames, Meant } from './names/form-names.ts'

/** Names with characters beyond ASCII, broken or double escapes, or an equals sign in brackets, that are compared at most. */
const MAX_UNUSUAL_NAMES = 256

/** Values that are looked at: far more than a request may count for. */
const MAX_FORM_VALUES = 256

const ampersand = 0x26
const semicolon = 0x3b
const equalsSign = 0x3d
const closingBracket = 0x5d
const lowerD = 0x64

/**
 * The values of fields in the text of a form (`application/x-www-form-urlencoded`), or of a query, as some backend could read them.
 * Fields are separated by `&`, to some also by `;`. Of a field that is there several times one takes the first value, another the last.
 *
 * @param text a character for each byte
 * @returns of each name
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
  /** In fields, and again in the pieces between semicolons: each is asked from left to right. */
  readonly #equals: NextCharacter
  readonly #equalsInPieces: NextCharacter
  #unusual = 0

  constructor(text: string, names: BodyNames) {
    this.#text = text
    this.#names = names.form
    this.found = new FoundLists(names.count, MAX_FORM_VALUES)
    this.#semicolons = new NextCharacter(text, semicolon)
    this.#equals = new NextCharacter(text, equalsSign)
    this.#equalsInPieces = new NextCharacter(text, equalsSign)
  }

  /** Reads a field, and what it is to whom a semicolon separates fields. */
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
    // To h3 the name begins behind them.
    while (start < end && this.#text.charCodeAt(start) === equalsSign) start++
    const equals = signs.from(start)
    if (equals >= end) return
    this.#add(this.#meant(start, equals), equals + 1, end)
    // To qs the name of `user[a=b]=1` ends behind the bracket.
    let behind = signs.from(equals + 1)
    while (behind < end && !this.#endsBracket(behind)) behind = signs.from(behind + 1)
    if (behind < end && this.#takeUnusual()) this.#add(this.#meant(start, behind), behind + 1, end)
  }

  #endsBracket(end: number): boolean {
    const last = this.#text.charCodeAt(end - 1)
    if (last === closingBracket) return true
    return (last | 0x20) === lowerD && this.#text.slice(end - 3, end).toUpperCase() === '%5D'
  }

  #meant(start: number, end: number): Meant {
    const meant = this.#names.ofSent(this.#text, start, end)
    if (meant !== undefined) return meant
    return this.#takeUnusual()
      ? this.#names.ofDecoded(decodedText(this.#text.slice(start, end), false))
      : nobody
  }

  /** Takes one of the comparisons that there are. Returns false, and the request is refused, if none is left. */
  #takeUnusual(): boolean {
    if (++this.#unusual > MAX_UNUSUAL_NAMES) this.found.cutAll()
    return !this.found.isCut
  }

  #add(names: Meant, start: number, end: number): void {
    if (names.length === 0 || start >= end || this.found.isCutForAll(names)) return
    const text = this.#text.slice(start, end)
    const others = text.includes('%') || beyondAscii.test(text) ? otherReadings(text) : none
    for (const name of names) {
      this.found.add(name, text, 0, 0)
      for (const other of others) this.found.add(name, other, 0, 0)
    }
  }
}

const nobody: Meant = []
const beyondAscii = /[\x80-\xff]/
const escapedBeyondAscii = /%(?:25)*[89a-f]/i

/** As much as is compared of any value. */
const MAX_TEXT = 2048

/** To WebOb an escape has one digit where a blank or the next escape follows, or the text ends: `%4%31` is `\x041`. */
const shortEscape = /%(?:[\da-f](?=%|$)|[\da-f][ +]|[ +][\da-f])/gi

/** The text as some readers decode it, but for the escapes that are left in it. */
function otherReadings(sent: string): readonly string[] {
  const text = sent.length > MAX_TEXT ? sent.trim().slice(0, MAX_TEXT) : sent
  const long = text.replace(shortEscape, (escape) =>
    String.fromCharCode(Number.parseInt(escape.replaceAll(/[%+ ]/g, ''), 16)),
  )
  const readings = readingsInLatin1(text)
  return long === text ? readings : [...readings, long]
}

/** The text to readers to whom its bytes are characters of Latin-1, in UTF-8. */
function readingsInLatin1(text: string): readonly string[] {
  const isRaw = beyondAscii.test(text)
  if (!isRaw && !escapedBeyondAscii.test(text)) return none
  // Browsers escape these. To busboy they are characters of Latin-1, beside escapes of UTF-8.
  const raw = isRaw ? [inUtf8(text)] : none
  const bytes = unescapedBytes(text, false)
  // To bottle, and to servlets of Tomcat 9, escapes are Latin-1 too. Browsers escape UTF-8.
  return isUtf8(bytes) ? raw : [...raw, inUtf8(bytes.toString('latin1'))]
}

function inUtf8(text: string): string {
  return Buffer.from(text).toString('latin1')
}

const none: readonly string[] = []
