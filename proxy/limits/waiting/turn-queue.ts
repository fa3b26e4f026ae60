import type { Limiter, Reservation } from '../limiter.ts'

/** When a request may go on, on the clock of the queue, and its reservation. */
export type Slot = { readonly dueMs: number; readonly reservation: Reservation }

export type Waiter = {
  /** Not before this, as another rule says. */
  readonly notBeforeMs: number
  readonly onTurn: () => void
}

/**
 * The requests of one client under one rule that wait in this process, and their turns, both in order. They are released in order: a
 * request that is due still waits for those before it.
 *
 * If a client leaves before its turn, each request behind it moves up by one turn, and the last turn is given back. The counters accept
 * that only if no other process has reserved a turn behind it.
 */
export class TurnQueue {
  readonly #limiter: Pick<Limiter, 'settle'>
  readonly #now: () => number
  readonly #onEmpty: () => void
  readonly #waiters: Waiter[] = []
  readonly #slots: Slot[] = []
  #timer: NodeJS.Timeout | undefined

  /**
   * @param now milliseconds of a monotonic clock
   * @param onEmpty called when the last one has gone
   */
  constructor(limiter: Pick<Limiter, 'settle'>, now: () => number, onEmpty: () => void) {
    this.#limiter = limiter
    this.#now = now
    this.#onEmpty = onEmpty
  }

  /** Adds a request behind the others. If the store gave it an earlier turn than theirs, it is due together with the last of them. */
  add(waiter: Waiter, slot: Slot): void {
    const last = this.#slots.at(-1)
    this.#slots.push(last && last.dueMs > slot.dueMs ? { ...slot, dueMs: last.dueMs } : slot)
    this.#waiters.push(waiter)
    if (this.#waiters.length === 1) this.#arm()
  }

  remove(waiter: Waiter): void {
    const at = this.#waiters.indexOf(waiter)
    if (at === -1) return
    this.#waiters.splice(at, 1)
    // A request that costs more must not take a turn that was reserved for fewer units.
    const units = this.#slots[at]?.reservation.units
    const areEqual = this.#slots.every(({ reservation }, i) => i < at || reservation.units === units)
    const [freed] = this.#slots.splice(areEqual ? -1 : at, 1)
    if (freed) this.#limiter.settle(freed.reservation, 0)
    if (at === 0) this.#arm()
    if (this.#waiters.length === 0) this.#onEmpty()
  }

  #arm(): void {
    clearTimeout(this.#timer)
    const dueMs = this.#nextMs()
    if (dueMs === undefined) return
    this.#timer = setTimeout(() => this.#release(), Math.max(0, Math.ceil(dueMs - this.#now())))
  }

  #nextMs(): number | undefined {
    const [waiter] = this.#waiters
    const [slot] = this.#slots
    return waiter && slot && Math.max(slot.dueMs, waiter.notBeforeMs)
  }

  #release(): void {
    const nowMs = this.#now()
    const released: Waiter[] = []
    for (let dueMs = this.#nextMs(); dueMs !== undefined && dueMs <= nowMs; dueMs = this.#nextMs()) {
      this.#slots.shift()
      const waiter = this.#waiters.shift()
      if (waiter) released.push(waiter)
    }
    this.#arm()
    if (this.#waiters.length === 0) this.#onEmpty()
    for (const { onTurn } of released) onTurn()
  }
}
