import { decodedText } from '../../../request/values/lenient-text.ts'
import type { Findings, FoundValue } from './found-values.ts'
import { FormName } from './form-names.ts'

/** Names with characters beyond ASCII, or broken or double escapes, that are compared at most. */
const MAX_UNUSUAL_NAMES = 256

/** Values that are looked at: far more than a request may count for. */
const MAX_FORM_VALUES = 256

const ampersand = 0x26
const semicolon = 0x3b
const equalsSign = 0x3d
const closingBracket = 0x5d
const lowerD = 0x64

/**
 * The values of a field in the text of a form (`application/x-www-form-urlencoded`), or of a query, as some backend could read them.
 * Fields are separated by `&`, to some also by `;`. Of a field that is there several times one takes the first value, another the last.
 *
 * @param text a character for each byte
 * @param path names of the field: more than one for `user[email]`
 */
export function readFormValues(text: string, path: readonly string[]): Findings {
  const search = new FieldSearch(text, path)
  for (let start = 0; start <= text.length && !search.isCut;) {
    const end = search.find(ampersand, start, text.length)
    search.readField(start, end)
    start = end + 1
  }
  return { values: search.values, elements: 1, unread: undefined, isCut: search.isCut }
}

const beyondAscii = /[\x80-\xff]/

class FieldSearch {
  readonly values: FoundValue[] = []
  isCut = false
  readonly #text: string
  readonly #name: FormName
  #unusual = 0

  constructor(text: string, path: readonly string[]) {
    this.#text = text
    this.#name = new FormName(path)
  }

  /** The place of a character; `end` if it is not before that. Looks no further, unlike `indexOf`: fields are many. */
  find(code: number, start: number, end: number): number {
    for (let at = start; at < end; at++) if (this.#text.charCodeAt(at) === code) return at
    return end
  }

  /** Reads a field, and what it is to whom a semicolon separates fields. */
  readField(start: number, end: number): void {
    this.#readPair(start, end)
    let to = this.find(semicolon, start, end)
    if (to === end) return
    for (let from = start; from <= end && !this.isCut; to = this.find(semicolon, from, end)) {
      this.#readPair(from, to)
      from = to + 1
    }
  }

  #readPair(from: number, end: number): void {
    let start = from
    // To h3 the name begins behind them.
    while (start < end && this.#text.charCodeAt(start) === equalsSign) start++
    const equals = this.find(equalsSign, start, end)
    if (equals === end) return
    if (this.#isMeant(start, equals)) this.#add(equals + 1, end)
    // To qs the name of `user[a=b]=1` ends behind the bracket.
    let behind = this.find(equalsSign, equals + 1, end)
    while (behind < end && !this.#endsBracket(behind)) behind = this.find(equalsSign, behind + 1, end)
    if (behind < end && this.#isMeant(start, behind)) this.#add(behind + 1, end)
  }

  #endsBracket(end: number): boolean {
    const last = this.#text.charCodeAt(end - 1)
    if (last === closingBracket) return true
    return (last | 0x20) === lowerD && this.#text.slice(end - 3, end).toUpperCase() === '%5D'
  }

  #isMeant(start: number, end: number): boolean {
    const isMeant = this.#name.isSent(this.#text, start, end)
    if (isMeant !== undefined) return isMeant
    if (++this.#unusual <= MAX_UNUSUAL_NAMES)
      return this.#name.isDecoded(decodedText(this.#text.slice(start, end), false))
    this.isCut = true
    return false
  }

  #add(start: number, end: number): void {
    if (start >= end) return
    if (this.values.length >= MAX_FORM_VALUES) this.isCut = true
    else this.#push(this.#text.slice(start, end))
  }

  #push(text: string): void {
    this.values.push({ text, element: 0, item: 0 })
    // Browsers escape these. To busboy they are characters of Latin-1.
    if (beyondAscii.test(text))
      this.values.push({ text: Buffer.from(text).toString('latin1'), element: 0, item: 0 })
  }
}
