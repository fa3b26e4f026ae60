import { KeyIndex, NONE } from './key-index.ts'
import { LargestTables, type TableState } from './largest-tables.ts'
import { SlotLists, type SlotList } from './slot-lists.ts'

/** The data of an algorithm in the slots of a pool. */
export type SlotContent = {
  /**
   * Returns when the slot no longer counts anything and can be used for another client. The end should change only while the slot is in no
   * list: if it becomes earlier in a list, such as by a refund, another table of the same size may have to give up a slot first.
   *
   * @param windowMs of the slot's table
   */
  readonly endsAtMs: (slot: number, windowMs: number) => number
  /** Frees what the algorithm holds for the slot outside the pool, before the slot is given to another client. */
  readonly clear?: (slot: number) => void
  /**
   * Returns an ended slot that is in a list, or `NONE`. Needed if slots do not end approximately in the order in which they were last put
   * into the list of their table: without it, only the first slot of a list is checked.
   *
   * @param maxReads the maximum number of slots to read; if none of them has ended, it returns `NONE`
   */
  readonly findEnded?: (nowMs: number, maxReads: number) => number
}

export type SlotOptions = {
  /** The number of slots, at least 1. Their memory is reserved at once, but becomes resident when it is written. */
  readonly maxKeys: number
  /** Any integer that clients cannot know. */
  readonly seed: number
  /** Returns the shard of the shared counters that holds a key, from 0 to 65,535. Without it, there is one shard. */
  readonly shardOf?: ((key: string) => number) | undefined
}

/**
 * The maximum number of slots that `findEnded` reads for each of the two slots that a decision reclaims. A request makes at most one slot
 * end later than known, which takes one read, so more than one read for each decision is enough to keep up.
 */
const MAX_READS_IN_PASSING = 4
/**
 * The same maximum before a slot is evicted; these reads take half a millisecond. If many clients have used their slots a second time,
 * and no request has come since, more slots than this may be ahead of an ended one. Slots that have not ended are then evicted, until
 * evictions and decisions have read all of the slots ahead.
 */
const MAX_READS_TO_EVICT = 1000

/** Counts of a client pending sync with the shared counters. Only its algorithm reads `counted`. */
export type PendingSlot = {
  readonly table: number
  readonly key: string
  /** When the slot no longer counts anything. */
  readonly endsAtMs: number
  readonly counted: readonly number[]
}

/**
 * The clients of an algorithm in a fixed number of slots. The algorithm keeps the used units of the clients in typed arrays, by
 * slot. Several tables share a pool; a table holds the clients of one policy.
 *
 * The slots of a table are in a linked list in the order in which they were last put there, which is nearly the order in which they
 * end. Ended slots are reclaimed at the heads of the lists, a few at each call and without timers. When all slots are in use and no
 * slot at the head of a list has ended, the longest list gives up a slot. So clients that make up keys under one policy cannot evict
 * the counts of a policy with fewer clients.
 *
 * The caller passes times, in milliseconds of one monotonic clock.
 */
export class SlotPool {
  readonly #index: KeyIndex
  readonly #lists: SlotLists
  readonly #content: SlotContent
  readonly #pendingAmounts: Uint32Array | Float64Array
  readonly #listOfTable: (SlotList | undefined)[] = []
  readonly #shardOf: ((key: string) => number) | undefined
  /** By slot: the shard of its pending numbers, if there are shards. */
  readonly #shards: Uint16Array
  /** By shard: the number of slots with numbers pending sync. Shards without such slots are not in the map. */
  readonly #pendingOfShards = new Map<number, number>()
  #turn = 0
  #evictions = 0
  /** The tables, the one with the most slots first. */
  readonly #longest = new LargestTables((table) => this.stateOf(table, this.#listOfTable[table]?.size ?? 0))
  /** The tables, the one whose first slot ends first at the top, because all tables have the same room here. */
  readonly #firstToEnd = new LargestTables((table) => this.stateOf(table, 1))
  #pendingSize = 0
  #pendingCursor = 0

  /** @param pendingAmounts the pending amount of each slot, 0 at first */
  constructor(
    { maxKeys, seed, shardOf }: SlotOptions,
    pendingAmounts: Uint32Array | Float64Array,
    content: SlotContent,
  ) {
    this.#shardOf = shardOf
    this.#shards = new Uint16Array(shardOf ? maxKeys : 0)
    this.#index = new KeyIndex(maxKeys, seed)
    this.#lists = new SlotLists(maxKeys)
    this.#pendingAmounts = pendingAmounts
    this.#content = content
  }

  /** Number of slots in use, including ended ones that are not reclaimed yet. */
  get size(): number {
    return this.#lists.size
  }

  /** Number of slots evicted before they ended, since the start. */
  get evictions(): number {
    return this.#evictions
  }

  /** Number of slots with numbers pending sync. */
  get pendingSize(): number {
    return this.#pendingSize
  }

  /** Returns the slot of a client, which may have ended, or `NONE`. */
  find(table: number, key: string): number {
    return this.#index.find(table, key)
  }

  /**
   * Takes a slot for a client that does not have one, and evicts another client if all slots are in use. The slot is in no list until
   * `putLast`.
   *
   * @param windowMs the same for all clients of a table
   */
  add(table: number, key: string, windowMs: number, nowMs: number): number {
    const list = this.#listOfTable[table] ?? this.#addList(table, windowMs)
    this.#reclaim(list, nowMs)
    if (this.#lists.isFull) this.evictFirst(nowMs)
    const slot = this.#lists.take()
    this.#index.insert(slot, table, key)
    this.updateTable(table)
    return slot
  }

  /** Takes a slot out of its list. It is not evicted until `putLast`. */
  takeOut(table: number, slot: number): void {
    const list = this.#listOfTable[table]
    if (list) this.#lists.unlink(list, slot)
  }

  /** Puts a slot that is in no list at the end of its table's list. */
  putLast(table: number, slot: number): void {
    const list = this.#listOfTable[table]
    if (list) this.#lists.linkLast(list, slot)
  }

  /** Frees a slot that is in a list. */
  remove(table: number, slot: number): void {
    const list = this.#listOfTable[table]
    if (list) this.#remove(list, slot)
  }

  /** Forgets a client. Returns whether there was one. */
  forget(table: number, key: string): boolean {
    const slot = this.#index.find(table, key)
    if (slot === NONE) return false
    this.remove(table, slot)
    return true
  }

  /** Reclaims up to two slots that have ended. Called with every decision, so that ended ones do not accumulate. */
  reclaimInPassing(nowMs: number): void {
    const list = this.#lists.all[this.#turn]
    if (!list || this.#reclaim(list, nowMs) === 2 || this.#content.findEnded) return
    this.#turn = this.#turn + 1 < this.#lists.all.length ? this.#turn + 1 : 0
  }

  /** Must be called before a slot is put into a list, if slots were evicted while it was in no list. */
  updateTable(table: number): void {
    // The slot itself is not in the list yet.
    this.#longest.updateRoom(table, (this.#listOfTable[table]?.size ?? 0) + 1)
    this.#firstToEnd.updateRoom(table, 1)
  }

  /** Returns the state of a table for `LargestTables`: with this room if the table has a slot to evict, or with 0. */
  stateOf(table: number, room: number): TableState {
    const list = this.#listOfTable[table]
    if (!list || list.first === NONE) return { room: 0, endsAtMs: Infinity }
    return { room, endsAtMs: this.#content.endsAtMs(list.first, list.windowMs) }
  }

  /**
   * Frees a slot that has ended, if one is found (see `MAX_READS_TO_EVICT`), or evicts the first slot of the largest table. Returns false
   * if no slot is in a list.
   *
   * @param largest finds the table to evict from; by default the one with the most slots
   */
  evictFirst(nowMs: number, largest = this.#longest): boolean {
    const ending = this.#listOfTable[this.#firstToEnd.find() ?? NONE]
    if (this.#reclaim(ending, nowMs, MAX_READS_TO_EVICT) > 0) return true
    const list = this.#listOfTable[largest.find() ?? NONE]
    if (!list) return false
    this.#evictions += 1
    this.#remove(list, list.first)
    return true
  }

  /** Frees all slots of these tables except those with numbers pending sync. Returns the tables that still have slots. */
  dropTables(tables: ReadonlySet<number>): ReadonlySet<number> {
    this.#turn = 0
    const left = new Set<number>()
    for (const table of tables) {
      const list = this.#listOfTable[table]
      if (!list) continue
      this.#lists.forEach(list, (slot) => {
        if (this.pendingAmount(slot) !== 0) left.add(table)
        else this.#remove(list, slot)
      })
      if (!left.has(table)) this.#listOfTable[table] = undefined
    }
    this.#lists.keep(new Set(this.#listOfTable))
    return left
  }

  /** The amount in the slot that is pending sync with the shared counters. */
  pendingAmount(slot: number): number {
    return this.#pendingAmounts[slot] ?? 0
  }

  setPending(slot: number, amount: number): void {
    const before = this.pendingAmount(slot)
    // Memory that is never written is never resident.
    if (before === amount) return
    this.#pendingAmounts[slot] = amount
    const change = Number(amount !== 0) - Number(before !== 0)
    if (change === 0) return
    this.#pendingSize += change
    if (before === 0 && this.#shardOf) this.#shards[slot] = this.#shardOf(this.#index.keyOf(slot))
    const shard = this.#shards[slot] ?? 0
    const pending = (this.#pendingOfShards.get(shard) ?? 0) + change
    if (pending > 0) this.#pendingOfShards.set(shard, pending)
    else this.#pendingOfShards.delete(shard)
  }

  /** Returns the shards of slots with numbers pending sync, without duplicates. */
  pendingShards(): Iterable<number> {
    return this.#pendingOfShards.keys()
  }

  /**
   * Hands out the numbers pending sync, at most `limit` of them.
   *
   * @param isAsked whether the numbers of a shard are handed out; without it, the numbers of all shards are
   * @param handOut called with a slot that has numbers pending sync, and the maximum number to return. It updates the slot's pending
   * amount, and returns undefined if all numbers have ended
   */
  takePending(
    limit: number,
    handOut: (slot: number, limit: number) => Pick<PendingSlot, 'endsAtMs' | 'counted'> | undefined,
    isAsked?: (shard: number) => boolean,
  ): PendingSlot[] {
    const taken: PendingSlot[] = []
    let room = limit
    for (let looked = 0; looked <= this.#lists.untouched && this.#pendingSize > 0 && room > 0;) {
      const slot = this.#pendingCursor
      const isWanted = this.pendingAmount(slot) !== 0 && (!isAsked || isAsked(this.#shards[slot] ?? 0))
      const part = isWanted ? handOut(slot, room) : undefined
      if (part) {
        taken.push({ table: this.#index.ownerOf(slot), key: this.#index.keyOf(slot), ...part })
        room -= part.counted.length
      }
      if (isWanted && this.pendingAmount(slot) !== 0) continue
      this.#pendingCursor = slot + 1 < this.#lists.untouched ? slot + 1 : 0
      looked += 1
    }
    return taken
  }

  tableOf(slot: number): number {
    return this.#index.ownerOf(slot)
  }

  /** The window length of the slot's table. */
  windowMsOf(slot: number): number {
    return this.#listOfTable[this.tableOf(slot)]?.windowMs ?? 0
  }

  #addList(table: number, windowMs: number): SlotList {
    const list = this.#lists.add(table, windowMs)
    this.#listOfTable[table] = list
    // The windows of an earlier table with this number may have been longer.
    this.#firstToEnd.updateEnd(table)
    return list
  }

  /** Reclaims ended slots of this list, or of all lists with `findEnded`. Returns how many, at most 2; there may be more to reclaim. */
  #reclaim(list: SlotList | undefined, nowMs: number, maxReads = MAX_READS_IN_PASSING): number {
    for (let reclaimed = 0; reclaimed < 2; reclaimed++) {
      const slot = this.#content.findEnded?.(nowMs, maxReads) ?? this.#findEndedFirst(list, nowMs)
      if (slot === NONE) return reclaimed
      this.remove(this.tableOf(slot), slot)
    }
    return 2
  }

  #findEndedFirst(list: SlotList | undefined, nowMs: number): number {
    if (!list || list.first === NONE) return NONE
    return this.#content.endsAtMs(list.first, list.windowMs) <= nowMs ? list.first : NONE
  }

  #remove(list: SlotList, slot: number): void {
    this.#content.clear?.(slot)
    this.setPending(slot, 0)
    this.#index.remove(slot)
    this.#lists.giveBack(list, slot)
  }
}
