import type { UpstreamExchange } from '../exchange.ts'
import type { UpstreamFailure } from '../failure.ts'

type Waiting = { readonly exchange: UpstreamExchange; readonly untilMs: number }

/** Exchanges failed per turn of the event loop: sending the reply to one takes a tenth of a millisecond over TLS. */
const MAX_FAILED_PER_TURN = 8

/**
 * Exchanges that wait for a connection to the backend, each for a bounded time. Clients are served in turn, and the
 * exchanges of one client in order of arrival. If the queue is full, a new exchange of a client with fewer entries
 * displaces the latest one of the client with the most.
 */
export class ExchangeQueue {
  readonly #max: number
  readonly #maxMs: number
  /** The queue of each client, never empty, in the order in which the clients are served. */
  readonly #clients = new Map<string, Waiting[]>()
  #size = 0
  /** Whether overdue exchanges are left to be failed in later turns of the event loop. */
  #isFailing = false

  /**
   * @param max exchanges that may wait
   * @param maxMs how long each may wait
   */
  constructor(max: number, maxMs: number) {
    this.#max = max
    this.#maxMs = maxMs
  }

  get size(): number {
    return this.#size
  }

  /** Queues an exchange. If the queue is full, returns the one to fail: this one, or another client's latest. */
  add(exchange: UpstreamExchange, nowMs: number): UpstreamExchange | undefined {
    if (this.#size >= this.#max) this.#dropCancelled()
    const own = this.#clients.get(exchange.client)
    let displaced: UpstreamExchange | undefined
    if (this.#size >= this.#max) {
      const longest = this.#longest()
      if (!longest || longest.length <= (own?.length ?? 0) + 1) return exchange
      displaced = longest.pop()?.exchange
      this.#size--
    }
    const waiting = { exchange, untilMs: nowMs + this.#maxMs }
    if (own) own.push(waiting)
    else this.#clients.set(exchange.client, [waiting])
    this.#size++
    return displaced
  }

  /**
   * Takes out the next exchange whose client is still connected.
   *
   * @param mayHave whether a client may take the awaited resource for its next exchange; other clients keep their place
   */
  take(mayHave: (client: string, next: UpstreamExchange) => boolean): UpstreamExchange | undefined {
    for (const [client, waiting] of this.#clients) {
      const next = this.#nextOf(waiting)
      if (next && !mayHave(client, next)) continue
      this.#clients.delete(client)
      if (!next) continue
      waiting.shift()
      this.#size--
      if (waiting.length > 0) this.#clients.set(client, waiting)
      return next
    }
    return undefined
  }

  /** Takes out all exchanges for which the test holds. */
  takeWhere(test: (exchange: UpstreamExchange) => boolean): UpstreamExchange[] {
    this.#dropCancelled()
    return this.#remove(({ exchange }) => test(exchange))
  }

  /** Fails exchanges that have waited too long, a few in each turn of the event loop, so that others are served in between. */
  failOverdue(nowMs: number, failureOf: () => UpstreamFailure): void {
    if (!this.#isFailing) this.#failSome(nowMs, failureOf)
  }

  #failSome(nowMs: number, failureOf: () => UpstreamFailure): void {
    this.#isFailing = false
    for (let failed = 0; failed < MAX_FAILED_PER_TURN; failed++) {
      const overdue = this.#takeOverdue(nowMs)
      if (!overdue) return
      overdue.onFailure(failureOf())
    }
    this.#isFailing = true
    setImmediate(() => this.#failSome(nowMs, failureOf))
  }

  #takeOverdue(nowMs: number): UpstreamExchange | undefined {
    for (const [client, waiting] of this.#clients) {
      for (let first = waiting[0]; first && first.untilMs <= nowMs; first = waiting[0]) {
        waiting.shift()
        this.#size--
        if (waiting.length === 0) this.#clients.delete(client)
        if (!first.exchange.isCancelled) return first.exchange
      }
    }
    return undefined
  }

  /** The first exchange whose client is still connected. Removes those before it. */
  #nextOf(waiting: Waiting[]): UpstreamExchange | undefined {
    for (let next = waiting[0]; next; next = waiting[0]) {
      if (!next.exchange.isCancelled) return next.exchange
      waiting.shift()
      this.#size--
    }
    return undefined
  }

  #longest(): Waiting[] | undefined {
    let longest: Waiting[] | undefined
    for (const waiting of this.#clients.values())
      if (waiting.length > (longest?.length ?? 0)) longest = waiting
    return longest
  }

  #dropCancelled(): void {
    this.#remove(({ exchange }) => exchange.isCancelled)
  }

  #remove(test: (waiting: Waiting) => boolean): UpstreamExchange[] {
    const removed: UpstreamExchange[] = []
    for (const [client, waiting] of this.#clients) {
      const kept = waiting.filter((one) => {
        if (!test(one)) return true
        removed.push(one.exchange)
        return false
      })
      if (kept.length === 0) this.#clients.delete(client)
      else if (kept.length < waiting.length) this.#clients.set(client, kept)
    }
    this.#size -= removed.length
    return removed
  }
}
