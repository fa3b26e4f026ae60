const SLOTS = 10
const SLOT_MS = 10

/** The units used in the last 100 ms, counted in slots of 10 ms. The sum covers at least the last 90 ms, and nothing older than 100 ms. */
export class RecentUse {
  /** A ring buffer: the units used in each 10 ms. */
  readonly #slots = new Float64Array(SLOTS)
  /** The number of the slot that is being filled, counted from the beginning of the clock. */
  #current = 0
  #total = 0

  add(units: number, nowMs: number): void {
    this.#advance(nowMs)
    const place = this.#current % SLOTS
    this.#slots[place] = (this.#slots[place] ?? 0) + units
    this.#total += units
  }

  read(nowMs: number): number {
    this.#advance(nowMs)
    return this.#total
  }

  #advance(nowMs: number): void {
    const current = Math.floor(nowMs / SLOT_MS)
    const steps = Math.min(SLOTS, current - this.#current)
    for (let step = 0; step < steps; step++) {
      const place = (current - step) % SLOTS
      this.#total -= this.#slots[place] ?? 0
      this.#slots[place] = 0
    }
    this.#current = current
  }
}
