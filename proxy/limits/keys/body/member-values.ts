import { maxReadings } from '../partition-key.ts'

/** How many requests of a batch count for a client. */
export type Counted = {
  readonly requests: number
  /** Whether only few backends take any of the requests for this client. */
  readonly isExtra: boolean
}

/** By value, or by the text of a key. */
export type Values = Map<string, Counted>

/** Adds up the counts of one value. */
export function counted(before: Counted | undefined, { requests, isExtra }: Counted): Counted {
  if (!before) return { requests, isExtra }
  return { requests: before.requests + requests, isExtra: before.isExtra && isExtra }
}

/** Extra values of an item: these only add charges, but each is a counter to be looked up. */
const MAX_EXTRA = 3 * maxReadings
/** Values that are told apart, and extra values: of more there are more clients than a request may count for. */
const MAX_DISTINCT = 128

/** The values of a member, each of which counts once in an item. */
export class MemberValues {
  /** By index of the batch's elements that have the member. */
  readonly byElement = new Map<number, Values>()
  readonly #prefix: string
  readonly #usual = new Set<string>()
  readonly #extra = new Set<string>()
  #item = -1
  #ofElement: Values = new Map()
  readonly #usualOfItem = new Set<string>()
  readonly #extraOfItem = new Set<string>()

  /** @param prefix for each value */
  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** Whether there are more values than are counted. */
  get isCut(): boolean {
    return (
      this.#usualOfItem.size > maxReadings ||
      this.#extraOfItem.size > MAX_EXTRA ||
      this.#usual.size > MAX_DISTINCT ||
      this.#extra.size > MAX_DISTINCT
    )
  }

  /** The next values are of this item, and those that follow one another are alternatives. */
  startItem(element: number, item: number): void {
    this.#ofElement = this.byElement.get(element) ?? new Map<string, Counted>()
    this.byElement.set(element, this.#ofElement)
    if (item === this.#item) return
    this.#item = item
    this.#usualOfItem.clear()
    this.#extraOfItem.clear()
  }

  add(value: string, isExtra: boolean): void {
    if (this.#usualOfItem.has(value)) return
    const isKnown = this.#extraOfItem.has(value)
    if (isExtra && isKnown) return
    ;(isExtra ? this.#extraOfItem : this.#usualOfItem).add(value)
    ;(isExtra ? this.#extra : this.#usual).add(value)
    const named = this.#prefix + value
    const requests = isKnown ? 0 : 1
    this.#ofElement.set(named, counted(this.#ofElement.get(named), { requests, isExtra }))
  }
}
