import type { UpstreamExchange } from '../exchange.ts'
import { allBusy, type UpstreamFailure } from '../failure.ts'
import { ExchangeQueue } from './queue.ts'

export type WaitingOptions = {
  /** Requests that may wait for a connection, and as many again for their turn to upload. */
  readonly maxQueued: number
  /** How long a request may wait for a connection. */
  readonly queueMs: number
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** How often the queues are checked. */
const CHECK_MS = 20

/** The exchanges that wait for a connection of a pool, and those that wait for their turn to upload. */
export class WaitingExchanges {
  readonly #queue: ExchangeQueue
  readonly #uploads: ExchangeQueue
  readonly #now: () => number
  readonly #onCheck: () => void
  #check: NodeJS.Timeout | undefined

  /** @param onCheck called periodically while exchanges wait, because some of them may have their turn by then */
  constructor({ maxQueued, queueMs, now }: WaitingOptions, onCheck: () => void) {
    this.#queue = new ExchangeQueue(maxQueued, queueMs)
    this.#uploads = new ExchangeQueue(maxQueued, queueMs)
    this.#now = now
    this.#onCheck = onCheck
  }

  /** Number of exchanges that wait for a connection. */
  get size(): number {
    return this.#queue.size
  }

  /** Number of exchanges that wait for their turn to upload. */
  get uploads(): number {
    return this.#uploads.size
  }

  /** Queues an exchange for a connection. If the queue is full, this one fails, or another client's latest. */
  add(exchange: UpstreamExchange): void {
    this.#addTo(this.#queue, exchange)
  }

  /** Queues an exchange for its turn to upload. If the queue is full, this one fails, or another client's latest. */
  addUpload(exchange: UpstreamExchange): void {
    this.#addTo(this.#uploads, exchange)
  }

  #addTo(queue: ExchangeQueue, exchange: UpstreamExchange): void {
    const displaced = queue.add(exchange, this.#now())
    this.#checkSoon()
    displaced?.onFailure(allBusy())
  }

  /** Takes out the next exchange that waits for a connection, of a client that may have one. */
  take(mayConnect: (client: string) => boolean): UpstreamExchange | undefined {
    return this.#queue.take(mayConnect)
  }

  /** Takes out the next exchange that waits for its turn to upload, of a client that may upload. */
  takeUpload(mayUpload: (client: string) => boolean): UpstreamExchange | undefined {
    return this.#uploads.take(mayUpload)
  }

  /** Takes out the exchanges whose body has arrived while they waited for their turn to upload it. */
  takeUploaded(): readonly UpstreamExchange[] {
    return this.#uploads.takeWhere(({ isBodyPending }) => !isBodyPending)
  }

  failOverdue(nowMs: number): void {
    for (const queue of [this.#queue, this.#uploads]) queue.failOverdue(nowMs, allBusy)
  }

  /** Fails all exchanges. */
  close(failureOf: () => UpstreamFailure): void {
    clearTimeout(this.#check)
    for (const queue of [this.#queue, this.#uploads])
      for (const exchange of queue.takeWhere(() => true)) exchange.onFailure(failureOf())
  }

  #checkSoon(): void {
    this.#check ??= setTimeout(() => {
      this.#check = undefined
      this.#onCheck()
      if (this.size > 0 || this.uploads > 0) this.#checkSoon()
    }, CHECK_MS)
  }
}
