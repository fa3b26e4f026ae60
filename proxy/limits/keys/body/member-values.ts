import { MAX_READINGS } from '../partition-key.ts'

/** The number of requests in a batch that count for a client. */
export type Counted = {
  readonly requests: number
  /** Whether only few backends attribute any of the requests to this client. */
  readonly isExtra: boolean
}

/** The counts by value, or by the text of a key. */
export type Values = Map<string, Counted>

/** Adds up the counts of one value. */
export function counted(before: Counted | undefined, { requests, isExtra }: Counted): Counted {
  if (!before) return { requests, isExtra }
  return { requests: before.requests + requests, isExtra: before.isExtra && isExtra }
}

/** Maximum extra values of an item. They only add charges, but each requires looking up a counter. */
const MAX_EXTRA = 3 * MAX_READINGS
/** Maximum distinct usual values, and extra values. More would be more clients than a request may count for. */
const MAX_DISTINCT = 128

/** The values of a member. A value counts once per item. */
export class MemberValues {
  /** The values by the index of the batch's element; only elements that have the member. */
  readonly byElement = new Map<number, Values>()
  readonly #prefix: string
  readonly #usual = new Set<string>()
  readonly #extra = new Set<string>()
  #item = -1
  #ofElement: Values = new Map()
  readonly #usualOfItem = new Set<string>()
  readonly #extraOfItem = new Set<string>()

  /** @param prefix prepended to each value */
  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** Whether there are more values than can be counted. */
  get isCut(): boolean {
    return (
      this.#usualOfItem.size > MAX_READINGS ||
      this.#extraOfItem.size > MAX_EXTRA ||
      this.#usual.size > MAX_DISTINCT ||
      this.#extra.size > MAX_DISTINCT
    )
  }

  /** Starts an item, to which the next values belong. Consecutive calls for the same item continue it. */
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
