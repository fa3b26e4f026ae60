import type { UnreadKey } from '../../../telemetry/telemetry.ts'

/** A value at the name that a rule counts by, as it was sent. */
export type FoundValue = {
  /** A character for each byte, without the escapes of its format. */
  readonly text: string
  /** The index of the element of a batch, from 0; 0 without a batch. */
  readonly element: number
  /** Values of the same item are alternatives: a backend takes one of them. */
  readonly item: number
  /** Whether the value has the escapes of a form, a query or a cookie. */
  readonly isEscaped?: boolean
  /** Whether only few backends read this in place of another value of the item: it adds charges, and changes nothing else. */
  readonly isExtra?: boolean
}

/** What one reader has found of a name in a body. */
export type Findings = {
  readonly values: readonly FoundValue[]
  /** How many elements a batch has that could be requests; 1 for anything else. */
  readonly elements: number
  /** The reason why the body may be read otherwise. */
  readonly unread: UnreadKey | undefined
  /** Whether values were left out because there are too many. */
  readonly isCut: boolean
  /** Whether some values are too long to be cleaned: WordPress may take them for any account. */
  readonly hasUncleaned?: boolean
}

/** Values that are looked at in a body: a batch of so many requests in 64 KiB would have 30 bytes for each. */
export const MAX_VALUES = 2000

/** The values of several names, by their numbers, as one reader finds them. */
export class FoundLists {
  readonly #maxValues: number
  readonly #isEscaped: boolean
  readonly #lists: FoundValue[][]
  readonly #isCut: boolean[]
  #left: number

  /** @param maxValues values of a name that are looked at */
  constructor(names: number, maxValues: number, isEscaped = false) {
    this.#maxValues = maxValues
    this.#isEscaped = isEscaped
    this.#lists = Array.from({ length: names }, () => [])
    this.#isCut = Array.from({ length: names }, () => false)
    this.#left = names
  }

  /** Whether there are too many values of each name, or too much to scan. */
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

  add(name: number, text: string, element: number, item: number): void {
    const list = this.#lists[name]
    if (!list) return
    if (list.length >= this.#maxValues) this.cut(name)
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

  /** @param unreadOf what may be read otherwise, of a name */
  findings(elements: number, unreadOf: (name: number) => UnreadKey | undefined): Findings[] {
    return this.#lists.map((values, name) => ({
      values,
      elements,
      unread: unreadOf(name),
      isCut: this.#isCut[name] ?? true,
    }))
  }
}

/** The values of one reading of a text that another reading has not had yet: each occurrence is taken once. */
export class RemainingTexts {
  readonly #left = new Map<string, number>()

  constructor(texts: readonly string[]) {
    for (const text of texts) this.#left.set(text, (this.#left.get(text) ?? 0) + 1)
  }

  /** Returns false if no occurrence of the text is left: the other reading has more of them. */
  take(text: string): boolean {
    const left = this.#left.get(text) ?? 0
    if (left > 0) this.#left.set(text, left - 1)
    return left > 0
  }
}
