/** Events of a simulation, ordered by time, in a binary heap. Events with the same time keep the order in which they were added. */
export class EventQueue<Event> {
  readonly #heap: Entry<Event>[] = []
  #added = 0

  get size(): number {
    return this.#heap.length
  }

  add(atUs: number, event: Event): void {
    const heap = this.#heap
    const entry = { atUs, order: this.#added++, event }
    let at = heap.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent]
      if (above === undefined || isBefore(above, entry)) break
      heap[at] = above
      at = parent
    }
    heap[at] = entry
  }

  /** Removes the earliest event and returns it with its time; undefined if the queue is empty. */
  next(): { readonly atUs: number; readonly event: Event } | undefined {
    const heap = this.#heap
    const [first] = heap
    const last = heap.pop()
    if (first === undefined || last === undefined || first === last) return first
    let at = 0
    for (;;) {
      const child = earlierChild(heap, at)
      const below = heap[child]
      if (below === undefined || isBefore(last, below)) break
      heap[at] = below
      at = child
    }
    heap[at] = last
    return first
  }
}

type Entry<Event> = { readonly atUs: number; readonly order: number; readonly event: Event }

function isBefore(one: Entry<unknown>, other: Entry<unknown>): boolean {
  return one.atUs < other.atUs || (one.atUs === other.atUs && one.order < other.order)
}

function earlierChild(heap: readonly Entry<unknown>[], parent: number): number {
  const left = heap[2 * parent + 1]
  const right = heap[2 * parent + 2]
  return left && right && isBefore(right, left) ? 2 * parent + 2 : 2 * parent + 1
}
