/** A set of bounded size. Members are added to the younger of two generations; when it is full, the older one is dropped. */
export class RecentlySeen {
  readonly #capacity: number
  #younger = new Set<string>()
  #older = new Set<string>()

  /** @param capacity maximum members of each generation */
  constructor(capacity: number) {
    this.#capacity = capacity
  }

  has(id: string): boolean {
    return this.#younger.has(id) || this.#older.has(id)
  }

  add(id: string): void {
    if (this.#younger.size >= this.#capacity) {
      this.#older = this.#younger
      this.#younger = new Set()
    }
    this.#younger.add(id)
  }

  clear(): void {
    this.#younger = new Set()
    this.#older = new Set()
  }
}
