import { spellingsOf } from './comparable/ignored-characters.ts'
import { jsonCookieText } from './json-cookie.ts'
import { decodedText } from './lenient-text.ts'
import { numberValues } from './number-values.ts'
import { unquotedReadings } from './unescaped.ts'

/** How the values of a part of a key are read. */
export type ValueReading = {
  /** Whether a value may be in quotes, as for `decodedText`. */
  readonly isQuoted: boolean
  /** Whether the backend reads the value as a whole number. */
  readonly isNumber: boolean
}

/** Returns the values that a spelling may stand for, in the form that they count by. */
export function valuesOf(sent: string, reading: ValueReading): readonly string[] {
  return valuesOfTexts(textsOf(sent, reading), reading)
}

/** Returns a spelling in each form in which backends may take it before they decode it. */
function textsOf(sent: string, { isQuoted }: ValueReading): ReadonlySet<string> {
  const texts = new Set(spellingsOf(sent))
  // A quoted cookie may have any character as an octal escape, such as `\000`.
  if (isQuoted && sent.includes('\\'))
    for (const read of unquotedReadings(sent)) for (const text of spellingsOf(read)) texts.add(text)
  return texts
}

function valuesOfTexts(texts: ReadonlySet<string>, { isQuoted, isNumber }: ValueReading): readonly string[] {
  const values = Array.from(texts, (text) => numberValues(decodedText(text, isQuoted), isNumber))
  const [only = []] = values
  return values.length === 1 ? only : [...new Set(values.flat())]
}

/** Maximum spellings to decode per value to find. Only attacks have as many. */
const MAX_SPELLINGS = 8

/** Maximum occurrences of a name. Reading a value takes a microsecond, and a header has room for thousands. No client sends as many. */
const MAX_PLACES = 64

/**
 * Maximum bytes of spellings that are read in many ways: with backslashes and other escapes, or with several characters that databases
 * ignore. Each byte of them takes up to 0.3 µs.
 */
const MAX_MIXED_BYTES = 2048
/**
 * Maximum bytes of spellings with backslashes. Each byte takes 16 ns, and names after backslashes do not end a value, so the values of one
 * header may overlap. A cookie of 4 KB, the most that browsers send, is read in up to eight ways.
 */
const MAX_ESCAPED_BYTES = 32 * 1024
/** Spellings with `ß`, or one Greek letter, have as many texts, and may be long. */
const MAX_USUAL_TEXTS = 2
const escapedOrBeyondAscii = /[%\0\x80-\xff]/

/** Collects the values, without duplicates, that a backend may read from the texts that were sent. */
export class DecodedValues {
  readonly #sent = new Set<string>()
  readonly #values = new Set<string>()
  readonly #maxValues: number
  readonly #reading: ValueReading
  #places = 0
  #unread = 0
  #mixedBytes = 0
  #escapedBytes = 0

  /** @param maxValues maximum number of values to find */
  constructor(maxValues: number, reading: ValueReading) {
    this.#maxValues = maxValues
    this.#reading = reading
  }

  /** Whether there are more than `maxValues` values. */
  get isFull(): boolean {
    return this.#values.size > this.#maxValues
  }

  /**
   * Adds a spelling of a value. If there are so many spellings that decoding them would delay other requests, each further one counts as a
   * value.
   */
  add(sent: string): void {
    this.#addSpelling(sent)
    // WebOb reads `\"` as a quote. A parser that removes quotes first reads a backslash, which may escape the next character.
    if (this.#reading.isQuoted && sent.includes('\\"')) this.#addSpelling(sent.replaceAll('\\"', '"'))
  }

  #addSpelling(sent: string): void {
    if (this.#sent.size === this.#sent.add(sent).size) return
    const isDecoded = this.#sent.size <= MAX_SPELLINGS * this.#maxValues
    for (const value of isDecoded ? this.#read(sent) : [sent]) if (value !== '') this.#values.add(value)
    const json = isDecoded && this.#reading.isQuoted ? jsonCookieText(sent) : undefined
    if (json !== undefined) this.#addSpelling(json)
  }

  /** Reads a spelling, unless it would take too long: then the client has more values than `maxValues`. */
  #read(sent: string): readonly string[] {
    const hasEscapes = this.#reading.isQuoted && sent.includes('\\')
    if (hasEscapes && !this.#takeEscaped(sent.length)) return []
    const hasEscapedEscapes = hasEscapes && escapedOrBeyondAscii.test(sent)
    if (hasEscapedEscapes && !this.#takeMixed(sent.length)) return []
    const texts = textsOf(sent, this.#reading)
    if (!hasEscapedEscapes && texts.size > MAX_USUAL_TEXTS && !this.#takeMixed(sent.length)) return []
    return valuesOfTexts(texts, this.#reading)
  }

  #takeMixed(bytes: number): boolean {
    this.#mixedBytes += bytes
    return this.#mixedBytes <= MAX_MIXED_BYTES || this.#fill()
  }

  #takeEscaped(bytes: number): boolean {
    this.#escapedBytes += bytes
    return this.#escapedBytes <= MAX_ESCAPED_BYTES || this.#fill()
  }

  /** Adds values until there are too many. */
  #fill(): false {
    while (!this.isFull) this.addUnread()
    return false
  }

  /** Counts an occurrence of the name. If there are too many, each further one counts as another value. */
  addPlace(): void {
    if (++this.#places > MAX_PLACES) this.addUnread()
  }

  /** Adds a value that is not read, and counts as different from all others. */
  addUnread(): void {
    this.#values.add(`unread ${++this.#unread}`)
  }

  toArray(): string[] {
    return [...this.#values]
  }
}
