import { jsonCookieText } from './json-cookie.ts'
import { decodedText } from './lenient-text.ts'
import { numberValues } from './number-values.ts'

/** How the values of a part of a key are read. */
export type ValueReading = {
  /** Quotes may be around a value, as for `decodedText`. */
  readonly isQuoted: boolean
  /** The backend takes it for a whole number. */
  readonly isNumber: boolean
}

/** The values that one spelling may stand for, each in the one form that it counts by. */
export function valuesOf(sent: string, { isQuoted, isNumber }: ValueReading): readonly string[] {
  return numberValues(decodedText(sent, isQuoted), isNumber)
}

/** Spellings that are decoded for each value that may be found. No request but an attack has so many. */
const maxSpellings = 8

/** Places of the name: to read a value takes a microsecond, and a header has room for thousands. No client sends so many. */
const maxPlaces = 64

/** Collects the values that a backend may read, each once, from how they were sent. */
export class DecodedValues {
  readonly #sent = new Set<string>()
  readonly #values = new Set<string>()
  readonly #maxValues: number
  readonly #reading: ValueReading
  #places = 0
  #unread = 0

  /** @param maxValues values to look for */
  constructor(maxValues: number, reading: ValueReading) {
    this.#maxValues = maxValues
    this.#reading = reading
  }

  /** Whether there are more values than the caller asked for. */
  get isFull(): boolean {
    return this.#values.size > this.#maxValues
  }

  /**
   * Adds a spelling of a value. If there are so many spellings that to decode all of them would keep others waiting,
   * further ones are taken for as many values.
   */
  add(sent: string): void {
    this.#addSpelling(sent)
    // To WebOb it is a quote; to a parser that removes quotes first, a backslash, which may escape the next character.
    if (this.#reading.isQuoted && sent.includes('\\"')) this.#addSpelling(sent.replaceAll('\\"', '"'))
  }

  #addSpelling(sent: string): void {
    if (this.#sent.size === this.#sent.add(sent).size) return
    const isDecoded = this.#sent.size <= maxSpellings * this.#maxValues
    for (const value of isDecoded ? valuesOf(sent, this.#reading) : [sent])
      if (value !== '') this.#values.add(value)
    const json = isDecoded && this.#reading.isQuoted ? jsonCookieText(sent) : undefined
    if (json !== undefined) this.#addSpelling(json)
  }

  /** Counts a place of the name. If there are too many, each further one is taken for another value. */
  addPlace(): void {
    if (++this.#places > maxPlaces) this.addUnread()
  }

  /** Adds a value that is not read, and taken for another one than all others. */
  addUnread(): void {
    this.#values.add(`unread ${++this.#unread}`)
  }

  toArray(): string[] {
    return [...this.#values]
  }
}
