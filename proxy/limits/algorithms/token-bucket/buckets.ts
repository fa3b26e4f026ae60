import { EndHeap } from '../slots/end-heap.ts'
import { NONE } from '../slots/key-index.ts'
import { SlotPool, type PendingSlot, type SlotOptions } from '../slots/slot-pool.ts'

/**
 * Maximum debt of a bucket: 285 years. A response may state any cost; a longer debt could not be the expiry of a key in Redis, nor a number
 * of seconds in a structured header.
 */
export const MAX_DEBT_MS = 9_000_000_000_000

/**
 * The debt of each client's token bucket: the time until the bucket is full again, as of a recorded instant. It shrinks as time passes.
 *
 * When the debt has run out, the bucket is full and its slot has ended. For a client that sends little, this takes the refill time of one
 * unit; for a client that sends a lot, it takes the policy's window or more.
 */
export class Buckets {
  /** The pending amount of a slot is the part of its debt that is pending sync. */
  readonly slots: SlotPool
  readonly #debtsMs: Float64Array
  /** By slot: the instant at which the bucket had this debt. */
  readonly #changedAtMs: Float64Array
  /** By slot: the instant since which the bucket has not been full. */
  readonly #sinceMs: Float64Array
  /** By slot: the units refunded since then, as the time they take to refill. */
  readonly #givenBackMs: Float64Array
  /** The slots that are in lists, by their ends. */
  readonly #ends: EndHeap

  /** @param options.maxKeys maximum number of buckets that are not full */
  constructor(options: SlotOptions) {
    const { maxKeys } = options
    this.#debtsMs = new Float64Array(maxKeys)
    this.#changedAtMs = new Float64Array(maxKeys)
    this.#sinceMs = new Float64Array(maxKeys)
    this.#givenBackMs = new Float64Array(maxKeys)
    const endsAtMs = (slot: number): number => (this.#changedAtMs[slot] ?? 0) + (this.#debtsMs[slot] ?? 0)
    const ends = new EndHeap(maxKeys, endsAtMs)
    this.#ends = ends
    const content = {
      endsAtMs,
      clear: (slot: number) => ends.delete(slot),
      findEnded: (nowMs: number, maxReads: number) => ends.findEnded(nowMs, maxReads),
    }
    this.slots = new SlotPool(options, new Float64Array(maxKeys), content)
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

  /** Takes an amount, as the time it takes to refill, from a bucket, which may be full. Returns the bucket's slot. */
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

  /** Adds to the part of the debt that is pending sync with the shared counters; a negative amount is subtracted. */
  addPending(slot: number, amountMs: number): void {
    this.slots.setPending(slot, Math.max(0, this.slots.pendingAmount(slot) + amountMs))
  }

  /** Hands out the debt pending sync of at most `limit` buckets, as far as it has not run out. Each debt is handed out once. */
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
    this.#debtsMs[slot] = Math.max(0, Math.min(this.debtMs(slot, nowMs) + amountMs, MAX_DEBT_MS))
    this.#changedAtMs[slot] = nowMs
  }
}
