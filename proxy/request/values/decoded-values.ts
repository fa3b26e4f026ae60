import { lenientText } from './lenient-text.ts'

/** Spellings that are decoded for each value that may be found. No request but an attack has so many. */
const mostSpellings = 8

/** Collects the values that a backend may read, each once, from how they were sent. */
export class DecodedValues {
  readonly #sent = new Set<string>()
  readonly #values = new Set<string>()
  readonly #most: number
  readonly #isQuoted: boolean

  /**
   * @param most values to look for
   * @param isQuoted as for `lenientText`
   */
  constructor(most: number, isQuoted: boolean) {
    this.#most = most
    this.#isQuoted = isQuoted
  }

  /** More values than were to be looked for. */
  get isFull(): boolean {
    return this.#values.size > this.#most
  }

  /**
   * Adds a spelling of a value. Where there are so many spellings that to decode all of them would keep others waiting,
   * further ones are taken for as many values.
   */
  add(sent: string): void {
    if (this.#sent.size === this.#sent.add(sent).size) return
    const isDecoded = this.#sent.size <= mostSpellings * this.#most
    const value = isDecoded ? lenientText(sent, this.#isQuoted) : sent
    if (value !== '') this.#values.add(value)
  }

  toArray(): string[] {
    return [...this.#values]
  }
}
