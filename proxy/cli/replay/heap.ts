type Entry<Value> = { readonly atMs: number; readonly order: number; readonly value: Value }

/** A heap of values ordered by time. Values with the same time keep the order in which they were pushed. */
export class Heap<Value> {
  readonly #entries: Entry<Value>[] = []
  #order = 0

  get size(): number {
    return this.#entries.length
  }

  /** The earliest time; infinite if the heap is empty. */
  get firstMs(): number {
    return this.#entries[0]?.atMs ?? Infinity
  }

  push(atMs: number, value: Value): void {
    const entries = this.#entries
    const entry = { atMs, order: this.#order++, value }
    let at = entries.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = entries[parent]
      if (!above || isBefore(above, entry)) break
      entries[at] = above
      at = parent
    }
    entries[at] = entry
  }

  pop(): Value | undefined {
    const first = this.#entries[0]
    const last = this.#entries.pop()
    if (last && this.#entries.length > 0) this.#sink(last)
    return first?.value
  }

  #sink(entry: Entry<Value>): void {
    const entries = this.#entries
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      let first = entries[child]
      if (!first) break
      const right = entries[child + 1]
      if (right && isBefore(right, first)) {
        first = right
        child += 1
      }
      if (isBefore(entry, first)) break
      entries[at] = first
      at = child
    }
    entries[at] = entry
  }
}

function isBefore(a: Entry<unknown>, b: Entry<unknown>): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}
