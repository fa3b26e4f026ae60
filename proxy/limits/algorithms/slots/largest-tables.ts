/**
 * The current state of a table of slots: the room that it takes, 0 if no slot of it can be evicted, and when its first slot ends.
 */
export type TableState = { readonly room: number; readonly endsAtMs: number }

/**
 * Finds the table that takes the most room and, among tables with the same room, the one whose first slot ends first. It is a binary heap
 * of the last known state of each table. A table may shrink or end later without an update: its state is read again when it reaches the
 * top, and it sinks to where it belongs. So a search takes logarithmic time, and each change costs at most one reading.
 */
export class LargestTables {
  readonly #read: (table: number) => TableState
  /** A binary heap: the table at place `i` takes no more room than the table at `(i - 1) >> 1`. */
  readonly #heap: number[] = []
  /** By table: its place in the heap, undefined if it is not in the heap. */
  readonly #places: (number | undefined)[] = []
  /** By table: an upper bound of its room. */
  readonly #rooms: number[] = []
  /** By table: a lower bound of the end of its first slot. */
  readonly #ends: number[] = []

  constructor(read: (table: number) => TableState) {
    this.#read = read
  }

  /** Must be called when a table may take more room than before. */
  updateRoom(table: number, room: number): void {
    const place = this.#places[table]
    if (place !== undefined && room <= (this.#rooms[table] ?? 0)) return
    this.#rooms[table] = room
    this.#ends[table] = -Infinity
    this.#rise(place ?? this.#heap.length, table)
  }

  /** Must be called when a table may have a first slot that ends earlier than its first slot did before. */
  updateEnd(table: number): void {
    const place = this.#places[table]
    if (place === undefined) return
    this.#ends[table] = -Infinity
    this.#rise(place, table)
  }

  /** Returns the largest table, or undefined if no table takes room. */
  find(): number | undefined {
    for (let table = this.#heap[0]; table !== undefined; table = this.#heap[0]) {
      const { room, endsAtMs } = this.#read(table)
      if (room === this.#rooms[table] && endsAtMs === this.#ends[table] && room > 0) return table
      this.#rooms[table] = room
      this.#ends[table] = endsAtMs
      if (room > 0) this.#sink(table)
      else this.#removeTop(table)
    }
    return undefined
  }

  #removeTop(table: number): void {
    this.#places[table] = undefined
    const last = this.#heap.pop()
    if (last !== undefined && last !== table) this.#sink(last)
  }

  #rise(from: number, table: number): void {
    let place = from
    while (place > 0) {
      const above = (place - 1) >> 1
      const other = this.#heap[above] ?? 0
      if (!this.#isBefore(table, other)) break
      this.#put(place, other)
      place = above
    }
    this.#put(place, table)
  }

  /** Puts a table at the top, and lets it sink below the tables that come before it. */
  #sink(table: number): void {
    let place = 0
    for (;;) {
      let below = 2 * place + 1
      let other = this.#heap[below]
      const right = this.#heap[below + 1]
      if (other !== undefined && right !== undefined && this.#isBefore(right, other)) {
        below += 1
        other = right
      }
      if (other === undefined || !this.#isBefore(other, table)) break
      this.#put(place, other)
      place = below
    }
    this.#put(place, table)
  }

  #put(place: number, table: number): void {
    this.#heap[place] = table
    this.#places[table] = place
  }

  #isBefore(table: number, other: number): boolean {
    const more = (this.#rooms[table] ?? 0) - (this.#rooms[other] ?? 0)
    return more > 0 || (more === 0 && (this.#ends[table] ?? 0) < (this.#ends[other] ?? 0))
  }
}
