import { KeyIndex, NONE } from './key-index.ts'
import { dropTables, SlotLists, type SlotList } from './slot-lists.ts'

/**
 * Memory for token buckets: a bounded number of slots, shared by many tables.
 *
 * What is kept of a bucket is its debt: how long it takes until it is full again. It shrinks as time passes, so that an
 * instant goes with it. A bucket is full, and its slot free, no later than its policy's window after the last change,
 * unless a request has cost more than was in it. So those of one window length are kept in the order of their last
 * changes, in a linked list for each length, as in `SlidingPool`; the first of a list is mostly the first to be full.
 * Where room is needed, the first of one of these lists goes.
 *
 * Times are milliseconds of one monotonic clock, given by the caller.
 */
export class BucketPool {
  readonly #index: KeyIndex
  readonly #slots: SlotLists
  readonly #debtsMs: Float64Array
  /** By slot: when the debt was that. */
  readonly #changedAtMs: Float64Array
  /** By slot: since when the bucket has not been full. */
  readonly #sinceMs: Float64Array
  /** By slot: what has been given back since then. */
  readonly #givenBackMs: Float64Array
  /** By slot: what of the debt is still to be added to the shared counters. */
  readonly #unsavedMs: Float64Array
  readonly #listOfTable: (SlotList | undefined)[] = []
  #evictions = 0
  #unsavedSlots = 0
  #unsavedCursor = 0

  /**
   * @param capacity the most buckets that are not full there can be, at least 1. Memory becomes resident where it is written
   * @param seed any integer that clients cannot know
   */
  constructor(capacity: number, seed: number) {
    this.#index = new KeyIndex(capacity, seed)
    this.#debtsMs = new Float64Array(capacity)
    this.#changedAtMs = new Float64Array(capacity)
    this.#sinceMs = new Float64Array(capacity)
    this.#givenBackMs = new Float64Array(capacity)
    this.#unsavedMs = new Float64Array(capacity)
    this.#slots = new SlotLists(capacity)
  }

  /** Buckets held, those included that are full by now and are not reclaimed yet. */
  get size(): number {
    return this.#slots.size
  }

  /** Buckets dropped before they were full, to make room, since the start. */
  get evictions(): number {
    return this.#evictions
  }

  get unsavedSize(): number {
    return this.#unsavedSlots
  }

  /** The slot of a bucket that is not full, or `NONE`. */
  find(table: number, key: string, nowMs: number): number {
    const slot = this.#index.find(table, key)
    return slot !== NONE && this.debtMs(slot, nowMs) > 0 ? slot : NONE
  }

  /** How long it takes until the bucket is full. */
  debtMs(slot: number, nowMs: number): number {
    const elapsedMs = nowMs - (this.#changedAtMs[slot] ?? 0)
    return Math.max(0, (this.#debtsMs[slot] ?? 0) - elapsedMs)
  }

  sinceMs(slot: number): number {
    return this.#sinceMs[slot] ?? 0
  }

  givenBackMs(slot: number): number {
    return this.#givenBackMs[slot] ?? 0
  }

  /** Takes out of a bucket, full or not, what it needs so long to get back. Returns its slot. */
  take(table: number, key: string, windowMs: number, amountMs: number, nowMs: number): number {
    const list = (this.#listOfTable[table] ??= this.#slots.listFor(windowMs))
    this.#reclaim(list, nowMs)
    let slot = this.#index.find(table, key)
    if (slot !== NONE && this.debtMs(slot, nowMs) === 0) {
      this.#remove(list, slot)
      slot = NONE
    }
    if (slot === NONE) {
      slot = this.#takeSlot(nowMs)
      this.#index.insert(slot, table, key)
      this.#debtsMs[slot] = 0
      this.#sinceMs[slot] = nowMs
      this.#givenBackMs[slot] = 0
    } else this.#slots.unlink(list, slot)
    this.#change(slot, amountMs, nowMs)
    this.#slots.linkLast(list, slot)
    return slot
  }

  /** Puts back what was taken. */
  giveBack(table: number, slot: number, amountMs: number, nowMs: number): void {
    const list = this.#listOfTable[table]
    this.#givenBackMs[slot] = this.givenBackMs(slot) + amountMs
    this.#change(slot, -amountMs, nowMs)
    if (list && this.debtMs(slot, nowMs) === 0) this.#remove(list, slot)
  }

  /** Forgets a bucket: it is full. */
  forget(table: number, key: string): void {
    const slot = this.#index.find(table, key)
    const list = this.#listOfTable[table]
    if (slot !== NONE && list) this.#remove(list, slot)
  }

  /** Removes all buckets of tables but those with a debt that is to be handed out. Returns the tables of which some are left. */
  dropTables(tables: ReadonlySet<number>): ReadonlySet<number> {
    return dropTables(
      {
        slots: this.#slots,
        listOfTable: this.#listOfTable,
        tableOf: (slot) => this.#index.ownerOf(slot),
        isUnsaved: (slot) => this.#unsavedMs[slot] !== 0,
        remove: (list, slot) => this.#remove(list, slot),
      },
      tables,
    )
  }

  /** Reclaims up to two full buckets of each window length. */
  reclaimInPassing(nowMs: number): void {
    for (const list of this.#slots.all) this.#reclaim(list, nowMs)
  }

  /** Notes that so much of the debt has still to be added to the shared counters; below 0, that it has not any more. */
  addUnsaved(slot: number, amountMs: number): void {
    const before = this.#unsavedMs[slot] ?? 0
    const after = Math.max(0, before + amountMs)
    this.#unsavedMs[slot] = after
    this.#unsavedSlots += Number(after > 0) - Number(before > 0)
  }

  unsavedMs(slot: number): number {
    return this.#unsavedMs[slot] ?? 0
  }

  /** Hands out, once, what is unsaved of at most `limit` buckets, as far as it is a debt still. */
  takeUnsaved(limit: number, nowMs: number): UnsavedDebt[] {
    const taken: UnsavedDebt[] = []
    while (this.#unsavedSlots > 0 && taken.length < limit) {
      const slot = this.#unsavedCursor
      this.#unsavedCursor = slot + 1 < this.#slots.untouched ? slot + 1 : 0
      const unsavedMs = this.unsavedMs(slot)
      if (unsavedMs === 0) continue
      this.addUnsaved(slot, -unsavedMs)
      const debtMs = Math.min(unsavedMs, this.debtMs(slot, nowMs))
      if (debtMs > 0) taken.push({ table: this.#index.ownerOf(slot), key: this.#index.keyOf(slot), debtMs })
    }
    return taken
  }

  #change(slot: number, amountMs: number, nowMs: number): void {
    this.#debtsMs[slot] = Math.max(0, this.debtMs(slot, nowMs) + amountMs)
    this.#changedAtMs[slot] = nowMs
  }

  #reclaim(list: SlotList, nowMs: number): void {
    for (let reclaimed = 0; reclaimed < 2 && list.first !== NONE; reclaimed++) {
      if (this.debtMs(list.first, nowMs) > 0) return
      this.#remove(list, list.first)
    }
  }

  #takeSlot(nowMs: number): number {
    if (this.#slots.isFull) this.#evictFirst(nowMs)
    return this.#slots.take()
  }

  #evictFirst(nowMs: number): void {
    const lists = this.#slots.all.filter(({ first }) => first !== NONE)
    const endOf = ({ first }: SlotList): number => this.debtMs(first, nowMs)
    const list = lists.reduce((earliest, other) => (endOf(other) < endOf(earliest) ? other : earliest))
    if (endOf(list) > 0) this.#evictions += 1
    this.#remove(list, list.first)
  }

  #remove(list: SlotList, slot: number): void {
    this.addUnsaved(slot, -this.unsavedMs(slot))
    this.#index.remove(slot)
    this.#slots.giveBack(list, slot)
  }
}

/** What of a bucket's debt is not in the shared counters yet. */
export type UnsavedDebt = { readonly table: number; readonly key: string; readonly debtMs: number }
