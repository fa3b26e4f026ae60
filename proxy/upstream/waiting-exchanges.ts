import type { UpstreamExchange } from './connection.ts'

type Waiting = { readonly exchange: UpstreamExchange; readonly untilMs: number }

const mostOverdueAtOnce = 50

/** Exchanges that wait for a connection to the backend, in turn, each for a bounded time. */
export class WaitingExchanges {
  readonly #max: number
  readonly #longestMs: number
  #waiting: Waiting[] = []

  /**
   * @param max exchanges that may wait
   * @param longestMs how long each may wait
   */
  constructor(max: number, longestMs: number) {
    this.#max = max
    this.#longestMs = longestMs
  }

  get size(): number {
    return this.#waiting.length
  }

  /** Lets an exchange wait. Returns whether there was room. */
  add(exchange: UpstreamExchange, nowMs: number): boolean {
    if (this.#waiting.length >= this.#max) this.#dropCancelled()
    if (this.#waiting.length >= this.#max) return false
    this.#waiting.push({ exchange, untilMs: nowMs + this.#longestMs })
    return true
  }

  /** Takes out the one that has waited longest and whose client is still there. */
  take(): UpstreamExchange | undefined {
    let next = this.#waiting.shift()
    while (next?.exchange.cancelled) next = this.#waiting.shift()
    return next?.exchange
  }

  /** Takes out all for which the test holds. */
  takeWhere(test: (exchange: UpstreamExchange) => boolean): UpstreamExchange[] {
    this.#dropCancelled()
    const taken = this.#waiting.map(({ exchange }) => exchange).filter(test)
    if (taken.length === 0) return taken
    const gone = new Set(taken)
    this.#waiting = this.#waiting.filter(({ exchange }) => !gone.has(exchange))
    return taken
  }

  /** Takes out those that have waited too long, but no more than some: each is work, and all come due together. */
  takeOverdue(nowMs: number): UpstreamExchange[] {
    const firstInTime = this.#waiting.findIndex(({ untilMs }) => nowMs < untilMs)
    const most = Math.max(mostOverdueAtOnce, this.#waiting.length / 10)
    const overdue = this.#waiting.splice(0, Math.min(most, firstInTime === -1 ? Infinity : firstInTime))
    return overdue.map(({ exchange }) => exchange).filter(({ cancelled }) => !cancelled)
  }

  #dropCancelled(): void {
    this.#waiting = this.#waiting.filter(({ exchange }) => !exchange.cancelled)
  }
}
