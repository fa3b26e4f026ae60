import { afterInput } from '../../../shared/after-input.ts'
import type { TableUse } from '../../telemetry/telemetry.ts'
import {
  awaitedOf,
  heldBytesOf,
  isBodyAwaited,
  onceBodyEnds,
  progressOf,
  type PacedExchange,
} from './client-progress.ts'
import { chooseLargest } from './largest-holders.ts'

export type PaceLimits = {
  /** Time in which a body must bring `minBodyRate` bytes for each second of it. */
  readonly bodyTimeoutMs: number
  /** Bytes a second; with 0 one byte in `bodyTimeoutMs` will do. */
  readonly minBodyRate: number
  /** Time in which the client must read some of its pending response. */
  readonly sendTimeoutMs: number
  /** Bytes that all clients together may leave unread. */
  readonly maxUnreadBytes: number
}

/** Memory that Node holds for an unread response, besides its bytes: some 20 KB over HTTP/2. */
const bytesEach = 20 * 1024

/** The exchanges in progress, of which those that wait too long for their client are ended. */
export type SlowClients = {
  add(exchange: PacedExchange): void
  /** The exchange is finished. It is watched until no more of the request body is expected. */
  finish(exchange: PacedExchange): void
  readonly size: number
  /** At the last check, clients had left more than half unread of what they may: sooner or later connections are closed for it. */
  readonly isPressed: boolean
  /** Bytes that clients had left unread at the last check, and how many connections have been closed for that. */
  readUnread(): TableUse
  close(): void
}

/** The progress of an exchange when its current timeout began. */
type Span = { readonly waitsFor: 'body' | 'response'; readonly progress: number; readonly sinceMs: number }

/**
 * Ends exchanges whose client sends its body or reads its response too slowly: each of them holds memory, and usually a
 * connection to the backend, and costs an attacker next to nothing.
 *
 * One periodic check covers all of them, so that no request needs a timer. Time spent waiting for the backend does not
 * count.
 *
 * If clients leave more unread than `maxUnreadBytes`, connections of the client with the most unread data are closed.
 *
 * @param now monotonic milliseconds
 * @param onEnded called with the number of connections that were ended for what they hold
 */
export function watchSlowClients(
  limits: PaceLimits,
  now: () => number,
  onEnded: (connections: number) => void,
): SlowClients {
  const { bodyTimeoutMs, sendTimeoutMs, maxUnreadBytes } = limits
  const watched = new WatchedExchanges(limits, onEnded)
  const sweepMs = Math.max(10, Math.min(250, bodyTimeoutMs / 4, sendTimeoutMs / 4))
  const sweep = setInterval(() => afterInput(() => watched.check(now())), sweepMs)
  sweep.unref()

  return {
    add: (exchange) => watched.add(exchange),
    finish(exchange) {
      if (isBodyAwaited(exchange)) onceBodyEnds(exchange, () => watched.remove(exchange))
      else watched.remove(exchange)
    },
    get size() {
      return watched.size
    },
    get isPressed() {
      return watched.unreadBytes > maxUnreadBytes / 2
    },
    readUnread: () => ({
      size: watched.unreadBytes,
      capacity: maxUnreadBytes,
      evictions: watched.endedConnections,
    }),
    close: () => clearInterval(sweep),
  }
}

/**
 * The exchanges in progress, and since when each waits for its client.
 *
 * They are in an array in which each knows its place, and in no `Set`: V8 allocates a new table for a `Set` every so many requests,
 * and each old table, once in the old generation, keeps its entries alive. That took 17 % of the CPU time of a request.
 */
class WatchedExchanges {
  readonly #limits: PaceLimits
  readonly #minBodyBytes: number
  readonly #onEnded: (connections: number) => void
  readonly #exchanges: PacedExchange[] = []
  readonly #spans = new Map<PacedExchange, Span>()
  /** Bytes that clients had left unread at the last check. */
  unreadBytes = 0
  /** Connections that have been closed for what they left unread. */
  endedConnections = 0

  constructor(limits: PaceLimits, onEnded: (connections: number) => void) {
    this.#limits = limits
    this.#minBodyBytes = Math.max(1, (limits.minBodyRate * limits.bodyTimeoutMs) / 1000)
    this.#onEnded = onEnded
  }

  get size(): number {
    return this.#exchanges.length
  }

  add(exchange: PacedExchange): void {
    exchange.place = this.#exchanges.length
    this.#exchanges.push(exchange)
  }

  remove(exchange: PacedExchange): void {
    if (exchange.place === -1) return
    const last = this.#exchanges.pop()
    if (last && last !== exchange) {
      this.#exchanges[exchange.place] = last
      last.place = exchange.place
    }
    exchange.place = -1
    if (this.#spans.size > 0) this.#spans.delete(exchange)
  }

  /** Ends those that are too slow, and what clients leave unread over the limit. */
  check(nowMs: number): void {
    this.unreadBytes = 0
    // A copy: those that are too slow leave the list.
    for (const exchange of [...this.#exchanges]) this.#look(exchange, nowMs)
    if (this.unreadBytes > this.#limits.maxUnreadBytes) this.#shed()
  }

  #look(exchange: PacedExchange, nowMs: number): void {
    const { bodyTimeoutMs, sendTimeoutMs } = this.#limits
    const waitsFor = awaitedOf(exchange)
    const progress = progressOf(exchange)
    if (waitsFor === 'response') this.unreadBytes += heldBytesOf(exchange) + bytesEach
    const span = this.#spans.get(exchange)
    if (waitsFor === undefined) {
      if (span) this.#spans.delete(exchange)
      return
    }
    const begin = (): void => void this.#spans.set(exchange, { waitsFor, progress, sinceMs: nowMs })
    if (span?.waitsFor !== waitsFor) return begin()
    const advance = progress - span.progress
    if (waitsFor === 'response' && advance > 0) return begin()
    if (nowMs - span.sinceMs < (waitsFor === 'body' ? bodyTimeoutMs : sendTimeoutMs)) return
    if (waitsFor === 'body' && advance >= this.#minBodyBytes) return begin()
    if (exchange.isFinished) this.#closeUnread(exchange)
    else exchange.onTooSlow()
  }

  #closeUnread(exchange: PacedExchange): void {
    this.remove(exchange)
    exchange.request.socket.destroy()
  }

  /** Closes connections of the client with the most unread data until the total is well below the limit. */
  #shed(): void {
    const unread = this.#exchanges
      .filter((exchange) => awaitedOf(exchange) === 'response')
      .map((exchange) => ({
        exchange,
        client: exchange.client,
        connection: exchange.request.socket,
        bytes: heldBytesOf(exchange) + bytesEach,
      }))
    const victims = chooseLargest(unread, this.unreadBytes - this.#limits.maxUnreadBytes * 0.75)
    this.endedConnections += victims.length
    for (const { exchange } of victims) exchange.guard(() => exchange.response.destroyConnection())
    this.#onEnded(victims.length)
  }
}
