import type { UnreadKey } from '../../../telemetry/telemetry.ts'

/** A value, as sent, of a name that a rule counts by. */
export type FoundValue = {
  /** One character per byte, with JSON escapes decoded; see `isEscaped`. */
  readonly text: string
  /** The index of the element of a batch, from 0; 0 without a batch. */
  readonly element: number
  /** Values of the same item are alternatives, of which a backend takes one. */
  readonly item: number
  /** Whether the value still has the escapes of a form, a query or a cookie. */
  readonly isEscaped?: boolean
  /** Whether only few backends read this value in place of another one of the item. It only adds charges. */
  readonly isExtra?: boolean
}

/** The values that one reader has found for a name in a body. */
export type Findings = {
  readonly values: readonly FoundValue[]
  /** The number of elements in a batch that could be requests; 1 without a batch. */
  readonly elements: number
  /** Why backends may read the body differently. */
  readonly unread: UnreadKey | undefined
  /** Whether values were dropped because there are too many. */
  readonly isCut: boolean
  /** Whether a backend may find further values: in fields after those that are read, or in accounts that are too long to clean. */
  readonly isIncomplete?: boolean
}

/** Maximum values to read in a body. In a batch of as many requests in 64 KiB, each would have 30 bytes. */
export const MAX_VALUES = 2000

/** Collects the values that one reader finds for several names, by the names' numbers. */
export class FoundLists {
  readonly #maxValues: number
  readonly #isEscaped: boolean
  readonly #lists: FoundValue[][]
  readonly #isCut: boolean[]
  #left: number

  /** @param maxValues maximum values of a name */
  constructor(names: number, maxValues: number, isEscaped = false) {
    this.#maxValues = maxValues
    this.#isEscaped = isEscaped
    this.#lists = Array.from({ length: names }, () => [])
    this.#isCut = Array.from({ length: names }, () => false)
    this.#left = names
  }

  /** Whether every name has too many values, or there is too much to scan. */
  get isCut(): boolean {
    return this.#left === 0
  }

  isCutFor(name: number): boolean {
    return this.#isCut[name] ?? true
  }

  isCutForAll(names: readonly number[]): boolean {
    for (let i = 0; i < names.length; i++) if (!this.isCutFor(names[i] ?? -1)) return false
    return true
  }

  countOf(name: number): number {
    return this.#lists[name]?.length ?? 0
  }

  textsOf(name: number): string[] {
    return (this.#lists[name] ?? []).map(({ text }) => text)
  }

  add(name: number, text: string, element: number, item: number, isExtra = false): void {
    const list = this.#lists[name]
    if (!list) return
    if (list.length >= this.#maxValues) this.cut(name)
    else if (isExtra) list.push({ text, element, item, isEscaped: this.#isEscaped, isExtra })
    else list.push(this.#isEscaped ? { text, element, item, isEscaped: true } : { text, element, item })
  }

  cut(name: number): void {
    if (this.#isCut[name]) return
    this.#isCut[name] = true
    this.#left--
  }

  cutAll(): void {
    this.#isCut.fill(true)
    this.#left = 0
  }

  /** @param unreadOf returns why a name's values may be read differently */
  findings(elements: number, unreadOf: (name: number) => UnreadKey | undefined): Findings[] {
    return this.#lists.map((values, name) => ({
      values,
      elements,
      unread: unreadOf(name),
      isCut: this.#isCut[name] ?? true,
    }))
  }
}

/** The texts of one reading that were not yet matched with those of another reading. Each occurrence can be taken once. */
export class RemainingTexts {
  readonly #left = new Map<string, number>()

  constructor(texts: readonly string[]) {
    for (const text of texts) this.#left.set(text, (this.#left.get(text) ?? 0) + 1)
  }

  /** Returns false if no occurrence of the text is left, so that the other reading has more of them. */
  take(text: string): boolean {
    const left = this.#left.get(text) ?? 0
    if (left > 0) this.#left.set(text, left - 1)
    return left > 0
  }
}
