import type { Limiter, Reservation } from '../limiter.ts'
import { LinkedList, type Linked } from './linked-list.ts'

/** When a request may continue, on the clock of the queue, and its reservation. */
export type Slot = { readonly dueMs: number; readonly reservation: Reservation }

export type Waiter = {
  /** The earliest time at which the request may continue, because of another rule. */
  readonly notBeforeMs: number
  readonly onTurn: () => void
}

/** Consecutive requests with the same cost, in order. Any of them can take the turn of any other. A run has as many waiters as slots. */
type Run = {
  readonly units: number
  readonly waiters: LinkedList<Waiter>
  readonly slots: LinkedList<Slot>
}

/** The place of a waiting request. */
type Place = { readonly run: Linked<Run>; readonly waiter: Linked<Waiter> }

/**
 * The requests of one client under one rule that wait in this process, and their turns, both in order. Requests are released in order: a
 * request that is due still waits for the ones before it.
 *
 * If a request leaves before its turn, each later request of its run moves up by one turn, and the last turn of the run is given back.
 * The counters accept that turn only if neither this process nor another one has reserved a later turn. Leaving takes constant time,
 * because clients decide how many requests leave.
 */
export class TurnQueue {
  readonly #limiter: Pick<Limiter, 'settle'>
  readonly #now: () => number
  readonly #onEmpty: () => void
  /** The runs in order, each with at least one request. */
  readonly #runs = new LinkedList<Run>()
  readonly #places = new Map<Waiter, Place>()
  #timer: NodeJS.Timeout | undefined

  /**
   * @param now milliseconds of a monotonic clock
   * @param onEmpty called when the last request has gone
   */
  constructor(limiter: Pick<Limiter, 'settle'>, now: () => number, onEmpty: () => void) {
    this.#limiter = limiter
    this.#now = now
    this.#onEmpty = onEmpty
  }

  /** Appends a request. If the store gave it an earlier turn than the requests before it, it is due together with the last of them. */
  add(waiter: Waiter, slot: Slot): void {
    const { units } = slot.reservation
    const before = this.#runs.last
    const isSame = before?.item.units === units
    const run = isSame
      ? before
      : this.#runs.add({ units, waiters: new LinkedList(), slots: new LinkedList() })
    const dueMs = Math.max(slot.dueMs, before?.item.slots.last?.item.dueMs ?? -Infinity)
    run.item.slots.add({ ...slot, dueMs })
    this.#places.set(waiter, { run, waiter: run.item.waiters.add(waiter) })
    if (!before) this.#arm()
  }

  remove(waiter: Waiter): void {
    const place = this.#places.get(waiter)
    if (!place) return
    const wasFirst = waiter === this.#runs.first?.item.waiters.first?.item
    const freed = place.run.item.slots.last
    this.#takeOut(place, freed)
    if (freed) this.#limiter.settle(freed.item.reservation, 0)
    if (wasFirst) this.#arm()
    if (!this.#runs.first) this.#onEmpty()
  }

  /** Removes a request, together with a turn of its run. */
  #takeOut({ run, waiter }: Place, slot: Linked<Slot> | undefined): void {
    this.#places.delete(waiter.item)
    run.item.waiters.remove(waiter)
    if (slot) run.item.slots.remove(slot)
    if (!run.item.waiters.first) this.#runs.remove(run)
  }

  #arm(): void {
    clearTimeout(this.#timer)
    const dueMs = this.#nextMs()
    if (dueMs === undefined) return
    this.#timer = setTimeout(() => this.#release(), Math.max(0, Math.ceil(dueMs - this.#now())))
  }

  #nextMs(): number | undefined {
    const run = this.#runs.first?.item
    const waiter = run?.waiters.first?.item
    const slot = run?.slots.first?.item
    return waiter && slot && Math.max(slot.dueMs, waiter.notBeforeMs)
  }

  #release(): void {
    const nowMs = this.#now()
    const released: Waiter[] = []
    for (let dueMs = this.#nextMs(); dueMs !== undefined && dueMs <= nowMs; dueMs = this.#nextMs()) {
      const run = this.#runs.first
      const waiter = run?.item.waiters.first
      if (!run || !waiter) break
      this.#takeOut({ run, waiter }, run.item.slots.first)
      released.push(waiter.item)
    }
    this.#arm()
    if (!this.#runs.first) this.#onEmpty()
    for (const { onTurn } of released) onTurn()
  }
}
