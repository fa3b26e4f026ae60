/**
 * Memory for counters whose fixed window begins with a client's first request: a bounded number of slots shared by
 * many tables.
 *
 * A counter is a number of columns in typed arrays and one entry in its table's map, so a million of them cost no
 * objects and no timers. Counters of one window length end in the order in which they began, so a linked list for
 * each length is sorted by construction: the counter that ends first is at the head of one of few lists. That is where
 * ended counters are reclaimed, a few at each call, and where room is made when all slots are taken.
 *
 * Times are milliseconds of one monotonic clock, given by the caller. It stops where windows of one length could end
 * in another order than they began: sliding windows need a structure of their own.
 */
export class CounterPool {
  readonly capacity: number
  readonly #counts: Uint32Array
  readonly #unsaved: Uint32Array
  readonly #endsAtMs: Float64Array
  /** The next slot of the same list: of the window length, or of free slots. */
  readonly #next: Int32Array
  readonly #tableOf: Uint32Array
  readonly #keys: string[] = []
  readonly #tables: CounterTable[] = []
  readonly #lists = new Map<number, WindowList>()
  readonly #listsInTurn: WindowList[] = []
  #turn = 0
  #firstFree = NONE
  #inUse = 0
  #evictions = 0
  #unsavedSlots = 0
  #unsavedCursor = 0

  /** @param capacity the most counters there can be at any time, at least 1 */
  constructor(capacity: number) {
    this.capacity = capacity
    // Zeroed memory becomes resident only where it is written, so the whole bound can be reserved at once.
    this.#counts = new Uint32Array(capacity)
    this.#unsaved = new Uint32Array(capacity)
    this.#endsAtMs = new Float64Array(capacity)
    this.#next = new Int32Array(capacity)
    this.#tableOf = new Uint32Array(capacity)
  }

  /** Counters held, those included that have ended and are not reclaimed yet. */
  get size(): number {
    return this.#inUse
  }

  /** Counters dropped before their window ended, to make room, since the start. */
  get evictions(): number {
    return this.#evictions
  }

  /** Counters with a count that `takeUnsaved` has not handed out. */
  get unsavedSize(): number {
    return this.#unsavedSlots
  }

  createTable(): CounterTable {
    const table: CounterTable = { index: this.#tables.length, slots: new Map() }
    this.#tables.push(table)
    return table
  }

  /** The slot of a running counter, or `NONE` where there is none or its window has ended. */
  find(table: CounterTable, key: string, nowMs: number): number {
    const slot = table.slots.get(key)
    return slot !== undefined && this.endsAtMs(slot) > nowMs ? slot : NONE
  }

  count(slot: number): number {
    return this.#counts[slot] ?? 0
  }

  endsAtMs(slot: number): number {
    return this.#endsAtMs[slot] ?? 0
  }

  add(slot: number, amount: number): void {
    this.#counts[slot] = Math.min(this.count(slot) + amount, LARGEST_COUNT)
  }

  /** Begins a counter's window now, in place of any counter with this key, and returns its slot. */
  begin(table: CounterTable, key: string, windowMs: number, nowMs: number): number {
    const list = this.#listFor(windowMs)
    this.#reclaim(list, nowMs, 2)
    const slot = this.#takeSlot()
    this.#counts[slot] = 0
    this.#unsaved[slot] = 0
    this.#endsAtMs[slot] = nowMs + windowMs
    this.#next[slot] = NONE
    this.#tableOf[slot] = table.index
    const ownKey = copyString(key)
    this.#keys[slot] = ownKey
    // The map keeps the key that it has: deleted first, it cannot go on holding a string that is no longer counted.
    table.slots.delete(ownKey)
    table.slots.set(ownKey, slot)
    if (list.last === NONE) list.first = slot
    else this.#next[list.last] = slot
    list.last = slot
    return slot
  }

  /** Forgets a counter. Its slot comes free when its window ends. Returns whether there was one. */
  forget(table: CounterTable, key: string): boolean {
    const slot = table.slots.get(key)
    if (slot === undefined) return false
    this.#dropUnsaved(slot)
    return table.slots.delete(key)
  }

  /** Reclaims a counter that has ended, if the list whose turn it is has one: to be called with every decision. */
  reclaimInPassing(nowMs: number): void {
    if (this.#listsInTurn.length === 0) return
    this.#turn = (this.#turn + 1) % this.#listsInTurn.length
    const list = this.#listsInTurn[this.#turn]
    if (list) this.#reclaim(list, nowMs, 1)
  }

  /** Notes that one of the slot's count has still to be added to the shared counters. */
  markUnsaved(slot: number): void {
    if (this.#unsaved[slot] === 0) this.#unsavedSlots += 1
    this.#unsaved[slot] = (this.#unsaved[slot] ?? 0) + 1
  }

  /** Hands out what is unsaved of at most `limit` counters and forgets that it was. Ended counters are left out. */
  takeUnsaved(limit: number, nowMs: number): UnsavedCount[] {
    const taken: UnsavedCount[] = []
    while (this.#unsavedSlots > 0 && taken.length < limit) {
      const slot = this.#unsavedCursor
      this.#unsavedCursor = (slot + 1) % this.#keys.length
      const amount = this.#unsaved[slot] ?? 0
      if (amount === 0) continue
      this.#dropUnsaved(slot)
      const table = this.#tables[this.#tableOf[slot] ?? 0]
      const endsAtMs = this.endsAtMs(slot)
      if (table && endsAtMs > nowMs) taken.push({ table, key: this.#keys[slot] ?? '', amount, endsAtMs })
    }
    return taken
  }

  #dropUnsaved(slot: number): void {
    if (this.#unsaved[slot] === 0) return
    this.#unsaved[slot] = 0
    this.#unsavedSlots -= 1
  }

  #listFor(windowMs: number): WindowList {
    let list = this.#lists.get(windowMs)
    if (!list) {
      list = { first: NONE, last: NONE }
      this.#lists.set(windowMs, list)
      this.#listsInTurn.push(list)
    }
    return list
  }

  #reclaim(list: WindowList, nowMs: number, limit: number): void {
    for (let done = 0; done < limit && list.first !== NONE && this.endsAtMs(list.first) <= nowMs; done++) {
      this.#removeFirst(list)
    }
  }

  #takeSlot(): number {
    if (this.#firstFree === NONE && this.#keys.length === this.capacity) {
      this.#evictions += 1
      this.#removeFirst(this.#listThatEndsFirst())
    }
    this.#inUse += 1
    if (this.#firstFree === NONE) return this.#keys.push('') - 1
    const slot = this.#firstFree
    this.#firstFree = this.#next[slot] ?? NONE
    return slot
  }

  #listThatEndsFirst(): WindowList {
    let earliest: WindowList = { first: NONE, last: NONE }
    let earliestMs = Infinity
    for (const list of this.#listsInTurn) {
      if (list.first === NONE || this.endsAtMs(list.first) >= earliestMs) continue
      earliest = list
      earliestMs = this.endsAtMs(list.first)
    }
    return earliest
  }

  #removeFirst(list: WindowList): void {
    const slot = list.first
    list.first = this.#next[slot] ?? NONE
    if (list.first === NONE) list.last = NONE
    const slots = this.#tables[this.#tableOf[slot] ?? 0]?.slots
    const key = this.#keys[slot] ?? ''
    // A client whose window has ended may have begun another, in another slot, before this one was reclaimed.
    if (slots?.get(key) === slot) slots.delete(key)
    this.#dropUnsaved(slot)
    this.#keys[slot] = ''
    this.#next[slot] = this.#firstFree
    this.#firstFree = slot
    this.#inUse -= 1
  }
}

export const NONE = -1
const LARGEST_COUNT = 0xffff_ffff

/** The counters of one policy: the slot of each client's. */
export type CounterTable = { readonly index: number; readonly slots: Map<string, number> }

/** What a counter has admitted that is not in the shared counters yet. */
export type UnsavedCount = {
  readonly table: CounterTable
  readonly key: string
  readonly amount: number
  readonly endsAtMs: number
}

/** Slots in the order in which their windows end. */
type WindowList = { first: number; last: number }

/**
 * The same string in memory of its own. A string cut out of a longer one keeps the longer one alive: a counter named
 * by an address in a request's field would hold the whole field.
 */
function copyString(text: string): string {
  const copy = Buffer.from(text, 'latin1').toString('latin1')
  return copy === text ? copy : Buffer.from(text, 'utf16le').toString('utf16le')
}
