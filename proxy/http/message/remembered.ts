import { ownCopy } from './detach-buffer.ts'

const ADDED_OF_NEW = 8

/**
 * A cache of results by text, for texts that recur, such as header names.
 *
 * Clients choose the texts, so it is bounded, and whatever they have filled it with makes room again: new entries go to the
 * younger of two generations, and entries used in the older one move there. A full one becomes the older, and the older is
 * dropped. Usual texts are always in the younger one. A list of the least recently used would have to be kept in order with each
 * use.
 *
 * Once one is full, an eighth of the new texts is added, so that recurring texts get in sooner or later: to add costs as much as
 * to find out what a text means, and a client that sends new ones all the time is not to cost more for it.
 */
export class Remembered<Value> {
  readonly #maxYounger: number
  readonly #maxTextLength: number
  readonly #usual: readonly (readonly [string, Value])[]
  #younger: Map<string, Value>
  #older: ReadonlyMap<string, Value> = new Map()
  #skipped = 0

  /**
   * @param most texts beside the usual ones, at least 2
   * @param maxTextLength longer ones are not remembered
   */
  constructor(most: number, maxTextLength: number, usual: readonly (readonly [string, Value])[] = []) {
    this.#usual = usual
    this.#younger = new Map(usual)
    this.#maxYounger = this.#younger.size + most / 2
    this.#maxTextLength = maxTextLength
  }

  find(text: string): Value | undefined {
    return this.#younger.get(text) ?? this.#findOlder(text)
  }

  #findOlder(text: string): Value | undefined {
    const value = this.#older.get(text)
    if (value !== undefined) this.#set(ownCopy(text), value)
    return value
  }

  /** @param text of one character a byte, in memory of its own */
  add(text: string, value: Value): void {
    if (text.length > this.#maxTextLength) return
    if (this.#older.size > 0 && ++this.#skipped % ADDED_OF_NEW !== 0) return
    this.#set(text, value)
  }

  #set(text: string, value: Value): void {
    if (this.#younger.size >= this.#maxYounger) {
      this.#older = this.#younger
      this.#younger = new Map(this.#usual)
    }
    this.#younger.set(text, value)
  }
}
