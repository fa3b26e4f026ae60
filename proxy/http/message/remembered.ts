import { ownCopy } from './detach-buffer.ts'

const ADDED_OF_NEW = 8

/**
 * A cache of results by text, for texts that recur, such as header names.
 *
 * Clients choose the texts, so the cache is bounded, and unused entries make room for others. New entries go to the younger of two
 * generations, and entries of the older one move there when they are used. When the younger generation is full, it replaces the older one.
 * Usual texts are always in the younger generation. A list of the least recently used texts would have to be reordered with each use.
 *
 * Once a generation has been full, only every eighth new text is added. Recurring texts still get in sooner or later, and a client that
 * keeps sending new texts does not cost more: adding a text costs as much as parsing it.
 */
export class Remembered<Value> {
  readonly #maxWeight: number
  readonly #maxTextLength: number
  readonly #usual: readonly (readonly [string, Value])[]
  readonly #weigh: (text: string, value: Value) => number
  #younger: Map<string, Value>
  #older: ReadonlyMap<string, Value> = new Map()
  /** The weight of the younger texts, without the usual ones. */
  #weight = 0
  #skipped = 0

  /**
   * @param maxWeight of all texts with their results, in addition to the usual ones, at least 2
   * @param maxTextLength longer texts are not cached
   * @param usual texts that are always cached, with their results
   * @param weigh returns the weight of an entry, by default 1
   */
  constructor(
    maxWeight: number,
    maxTextLength: number,
    usual: readonly (readonly [string, Value])[] = [],
    weigh: (text: string, value: Value) => number = () => 1,
  ) {
    this.#usual = usual
    this.#weigh = weigh
    this.#younger = new Map(usual)
    this.#maxWeight = maxWeight / 2
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

  /** @param text one character per byte, in memory of its own */
  add(text: string, value: Value): void {
    if (text.length > this.#maxTextLength) return
    if (this.#older.size > 0 && ++this.#skipped % ADDED_OF_NEW !== 0) return
    this.#set(text, value)
  }

  #set(text: string, value: Value): void {
    const weight = this.#weigh(text, value)
    if (this.#weight + weight > this.#maxWeight) {
      this.#older = this.#younger
      this.#younger = new Map(this.#usual)
      this.#weight = 0
    }
    this.#weight += weight
    this.#younger.set(text, value)
  }
}
