import type { MemoryOptions } from '../memory-counts.ts'
import { EndHeap } from '../slots/end-heap.ts'
import { NONE } from '../slots/key-index.ts'
import { SlotPool, type PendingSlot } from '../slots/slot-pool.ts'

/**
 * The debt of each client's token bucket: the time until it is full again, and when it was that. It shrinks as time passes.
 *
 * A bucket is full, and its slot has ended, when the debt has run out: after one unit's time for a client that sends little, and after
 * the policy's window, or more, for one that sends much.
 */
export class Buckets {
  /** The pending sync of a slot is a part of its debt. */
  readonly slots: SlotPool
  readonly #debtsMs: Float64Array
  /** By slot: the instant of the debt. */
  readonly #changedAtMs: Float64Array
  /** By slot: the instant since which the bucket has not been full. */
  readonly #sinceMs: Float64Array
  /** By slot: the units refunded since then, as the time they take to refill. */
  readonly #givenBackMs: Float64Array
  /** The slots in lists. */
  readonly #ends: EndHeap

  /**
   * @param capacity maximum number of buckets that are not full, at least 1. Memory becomes resident when it is written
   * @param seed any integer that clients cannot know
   */
  constructor(capacity: number, seed: number, shardOf?: MemoryOptions['shardOf']) {
    this.#debtsMs = new Float64Array(capacity)
    this.#changedAtMs = new Float64Array(capacity)
    this.#sinceMs = new Float64Array(capacity)
    this.#givenBackMs = new Float64Array(capacity)
    const endsAtMs = (slot: number): number => (this.#changedAtMs[slot] ?? 0) + (this.#debtsMs[slot] ?? 0)
    const ends = new EndHeap(capacity, endsAtMs)
    this.#ends = ends
    const content = {
      endsAtMs,
      clear: (slot: number) => ends.delete(slot),
      findEnded: (nowMs: number, maxReads: number) => ends.findEnded(nowMs, maxReads),
    }
    this.slots = new SlotPool(capacity, seed, new Float64Array(capacity), content, shardOf)
  }

  /** The slot of a bucket that is not full, or `NONE`. */
  find(table: number, key: string, nowMs: number): number {
    const slot = this.slots.find(table, key)
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

  /** Takes from a bucket, full or not, an amount given as the time it takes to refill. Returns the bucket's slot. */
  take(table: number, key: string, windowMs: number, amountMs: number, nowMs: number): number {
    let slot = this.find(table, key, nowMs)
    if (slot === NONE) {
      this.slots.forget(table, key)
      slot = this.slots.add(table, key, windowMs, nowMs)
      this.#debtsMs[slot] = 0
      this.#sinceMs[slot] = nowMs
      this.#givenBackMs[slot] = 0
    } else this.slots.takeOut(table, slot)
    this.#change(slot, amountMs, nowMs)
    this.slots.putLast(table, slot)
    this.#ends.update(slot)
    return slot
  }

  /** Puts taken units back. */
  giveBack(table: number, slot: number, amountMs: number, nowMs: number): void {
    this.#givenBackMs[slot] = this.givenBackMs(slot) + amountMs
    this.#change(slot, -amountMs, nowMs)
    if (this.debtMs(slot, nowMs) === 0) this.slots.remove(table, slot)
    else this.#ends.update(slot)
  }

  /** Notes that so much of the debt has still to be added to the shared counters; below 0, that it has not any more. */
  addPending(slot: number, amountMs: number): void {
    this.slots.setPending(slot, Math.max(0, this.slots.pendingAmount(slot) + amountMs))
  }

  /** Hands out, once, the debt pending sync of at most `limit` buckets, as far as it has not run out. */
  takePending(limit: number, nowMs: number, isAsked?: (shard: number) => boolean): PendingSlot[] {
    return this.slots.takePending(
      limit,
      (slot) => {
        const debtMs = Math.min(this.slots.pendingAmount(slot), this.debtMs(slot, nowMs))
        this.slots.setPending(slot, 0)
        return debtMs > 0 ? { endsAtMs: nowMs + debtMs, counted: [debtMs] } : undefined
      },
      isAsked,
    )
  }

  #change(slot: number, amountMs: number, nowMs: number): void {
    this.#debtsMs[slot] = Math.max(0, this.debtMs(slot, nowMs) + amountMs)
    this.#changedAtMs[slot] = nowMs
  }
}
