import { afterInput } from '../../../shared/after-input.ts'
import type { TableUse } from '../../telemetry/telemetry.ts'
import {
  awaitedOf,
  unreadBytesOf,
  isBodyAwaited,
  onceBodyEnds,
  progressOf,
  type PacedExchange,
} from './client-progress.ts'
import { chooseLargest } from './largest-holders.ts'

export type PaceLimits = {
  /** Each period of this length must bring at least `minBodyRate` bytes of the body per second. */
  readonly bodyTimeoutMs: number
  /** Bytes per second; with 0, one byte in `bodyTimeoutMs` is enough. */
  readonly minBodyRate: number
  /** Time in which the client must read some of its pending response. */
  readonly sendTimeoutMs: number
  /** Bytes that all clients together may leave unread. */
  readonly maxUnreadBytes: number
}

/** Memory of an unread response besides its bytes: about 20 KB over HTTP/2. */
const OVERHEAD_BYTES = 20 * 1024

/** The timeout that runs for an exchange: what it waits for from its client, since when, and the progress at that time. */
type RunningTimeout = {
  readonly waitsFor: 'body' | 'response'
  readonly progress: number
  readonly sinceMs: number
}

/**
 * Ends exchanges whose client sends its body or reads its response too slowly. Each such exchange holds memory, and usually a connection to
 * the backend, and costs an attacker next to nothing.
 *
 * One periodic check covers all of them, so that no request needs a timer. Time spent waiting for the backend does not count.
 *
 * If clients leave more unread than `maxUnreadBytes`, connections of the client with the most unread data are closed; behind a proxy that
 * shares connections between clients, only its streams are reset.
 *
 * The exchanges are in an array, in which each exchange knows its index, and not in a `Set`. V8 keeps allocating new tables for a `Set`
 * that changes, and an old table in the old generation keeps its entries alive. That took 17 % of the CPU time of a request.
 */
export class SlowClients {
  readonly #limits: PaceLimits
  readonly #minBodyBytes: number
  readonly #onEnded: (connections: number) => void
  readonly #exchanges: PacedExchange[] = []
  /** The timeouts of the exchanges that wait for their client. */
  readonly #timeouts = new Map<PacedExchange, RunningTimeout>()
  readonly #sweep: NodeJS.Timeout
  /** Bytes that clients had left unread at the last check. */
  #unreadBytes = 0
  /** Connections, and streams of proxies, that have been ended because of unread data. */
  #endedConnections = 0

  /**
   * @param now monotonic milliseconds
   * @param onEnded called with the number of connections, or streams of proxies, that were ended because of unread data
   */
  constructor(limits: PaceLimits, now: () => number, onEnded: (connections: number) => void) {
    const { minBodyRate, bodyTimeoutMs, sendTimeoutMs } = limits
    this.#limits = limits
    this.#minBodyBytes = Math.max(1, (minBodyRate * bodyTimeoutMs) / 1000)
    this.#onEnded = onEnded
    const sweepMs = Math.max(10, Math.min(250, bodyTimeoutMs / 4, sendTimeoutMs / 4))
    this.#sweep = setInterval(() => afterInput(() => this.#check(now())), sweepMs).unref()
  }

  get size(): number {
    return this.#exchanges.length
  }

  /** Whether clients had left more than half of `maxUnreadBytes` unread at the last check, so that connections may soon be closed. */
  get isPressed(): boolean {
    return this.#unreadBytes > this.#limits.maxUnreadBytes / 2
  }

  add(exchange: PacedExchange): void {
    exchange.place = this.#exchanges.length
    this.#exchanges.push(exchange)
  }

  /** Call when the exchange is finished. It is watched until no more of the request body is expected. */
  finish(exchange: PacedExchange): void {
    if (isBodyAwaited(exchange)) onceBodyEnds(exchange, () => this.#remove(exchange))
    else this.#remove(exchange)
  }

  /** Bytes that clients had left unread at the last check, and how many connections or streams have been ended because of them. */
  readUnread(): TableUse {
    return {
      size: this.#unreadBytes,
      capacity: this.#limits.maxUnreadBytes,
      evictions: this.#endedConnections,
    }
  }

  close(): void {
    clearInterval(this.#sweep)
  }

  #remove(exchange: PacedExchange): void {
    if (exchange.place === -1) return
    const last = this.#exchanges.pop()
    if (last && last !== exchange) {
      this.#exchanges[exchange.place] = last
      last.place = exchange.place
    }
    exchange.place = -1
    if (this.#timeouts.size > 0) this.#timeouts.delete(exchange)
  }

  /** Ends exchanges whose client is too slow, and closes connections if clients leave too much unread. */
  #check(nowMs: number): void {
    const { isPressed } = this
    this.#unreadBytes = 0
    // Over a copy, because exchanges that are too slow leave the list.
    for (const exchange of [...this.#exchanges]) this.#checkOne(exchange, isPressed, nowMs)
    if (this.#unreadBytes > this.#limits.maxUnreadBytes) this.#closeLargest()
  }

  #checkOne(exchange: PacedExchange, isPressed: boolean, nowMs: number): void {
    const { bodyTimeoutMs, sendTimeoutMs } = this.#limits
    const waitsFor = awaitedOf(exchange)
    const progress = progressOf(exchange, isPressed)
    if (waitsFor === 'response') this.#unreadBytes += unreadBytesOf(exchange) + OVERHEAD_BYTES
    const running = this.#timeouts.get(exchange)
    if (waitsFor === undefined) {
      if (running) this.#timeouts.delete(exchange)
      return
    }
    const restart = (): void => void this.#timeouts.set(exchange, { waitsFor, progress, sinceMs: nowMs })
    if (running?.waitsFor !== waitsFor) return restart()
    const advance = progress - running.progress
    if (waitsFor === 'response' && advance > 0) return restart()
    if (nowMs - running.sinceMs < (waitsFor === 'body' ? bodyTimeoutMs : sendTimeoutMs)) return
    if (waitsFor === 'body' && advance >= this.#minBodyBytes) return restart()
    if (exchange.isFinished) this.#closeUnread(exchange)
    else exchange.onTooSlow()
  }

  #closeUnread(exchange: PacedExchange): void {
    this.#remove(exchange)
    exchange.request.socket.destroy()
  }

  /** Ends responses of the client with the most unread data, with their connections, until the total is well below the limit. */
  #closeLargest(): void {
    const unread = this.#exchanges
      .filter((exchange) => awaitedOf(exchange) === 'response')
      .map((exchange) => ({
        exchange,
        client: exchange.client,
        connection: exchange.isOnSharedConnection ? exchange : exchange.request.socket,
        bytes: unreadBytesOf(exchange) + OVERHEAD_BYTES,
      }))
    const victims = chooseLargest(unread, this.#unreadBytes - this.#limits.maxUnreadBytes * 0.75)
    this.#endedConnections += victims.length
    for (const { exchange } of victims) exchange.guard(() => endUnread(exchange))
    this.#onEnded(victims.length)
  }
}

function endUnread({ response, isOnSharedConnection }: PacedExchange): void {
  if (isOnSharedConnection) response.abort()
  else response.destroyConnection()
}
