/**
 * How many of a bounded number of places each client holds, and whether it may have one more.
 *
 * A client may take another place while it holds at most `times` as many as are free. With `times` of 3, a single client gets three
 * quarters, two get three sevenths each, and no matter how many places other clients hold, one is left for a client without any. The rule
 * is that of switches whose ports share one buffer (Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet
 * switches", 1998). Places that are held are never taken away.
 */
export class ClientShares {
  #max: number
  readonly #times: number
  readonly #held = new Map<string, number>()
  #total = 0

  constructor(max: number, times: number) {
    this.#max = max
    this.#times = times
  }

  /** Places that are held. */
  get total(): number {
    return this.#total
  }

  /** Changes the number of places. Places that are held stay held. */
  resize(max: number): void {
    this.#max = max
  }

  allows(client: string): boolean {
    const free = this.#max - this.#total
    return free > 0 && (this.#held.get(client) ?? 0) <= this.#times * free
  }

  add(client: string): void {
    this.#total++
    this.#held.set(client, (this.#held.get(client) ?? 0) + 1)
  }

  /** Gives back a place that the client holds. */
  remove(client: string): void {
    const left = (this.#held.get(client) ?? 0) - 1
    if (left < 0) return
    this.#total--
    if (left === 0) this.#held.delete(client)
    else this.#held.set(client, left)
  }
}
