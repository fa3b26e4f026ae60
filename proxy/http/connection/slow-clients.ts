import { afterInput } from '../../../shared/after-input.ts'
import type { TableUse } from '../../telemetry/telemetry.ts'
import {
  awaitedOf,
  heldBytesOf,
  isBodyAwaited,
  onceBodyOver,
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
  /** The exchange is over. It is let go of once no more of the request body is expected. */
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
 * An array in which each exchange knows its place, and no `Set`: V8 allocates a new table for a `Set` every so many requests,
 * and each old table, once in the old generation, keeps its entries alive. That took 17 % of the CPU time of a request.
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
  const { bodyTimeoutMs, minBodyRate, sendTimeoutMs, maxUnreadBytes } = limits
  const minBodyBytes = Math.max(1, (minBodyRate * bodyTimeoutMs) / 1000)
  const exchanges: PacedExchange[] = []
  const spans = new Map<PacedExchange, Span>()
  let unreadBytes = 0
  let endedConnections = 0

  const remove = (exchange: PacedExchange): void => {
    if (exchange.place === -1) return
    const last = exchanges.pop()
    if (last && last !== exchange) {
      exchanges[exchange.place] = last
      last.place = exchange.place
    }
    exchange.place = -1
    if (spans.size > 0) spans.delete(exchange)
  }
  const look = (exchange: PacedExchange, nowMs: number): void => {
    const waitsFor = awaitedOf(exchange)
    const progress = progressOf(exchange)
    if (waitsFor === 'response') unreadBytes += heldBytesOf(exchange) + bytesEach
    const span = spans.get(exchange)
    if (waitsFor === undefined) {
      if (span) spans.delete(exchange)
      return
    }
    const begin = (): void => void spans.set(exchange, { waitsFor, progress, sinceMs: nowMs })
    if (span?.waitsFor !== waitsFor) return begin()
    const advance = progress - span.progress
    if (waitsFor === 'response' && advance > 0) return begin()
    if (nowMs - span.sinceMs < (waitsFor === 'body' ? bodyTimeoutMs : sendTimeoutMs)) return
    if (waitsFor === 'body' && advance >= minBodyBytes) return begin()
    if (exchange.isOver) closeUnread(exchange)
    else exchange.onTooSlow()
  }
  const closeUnread = (exchange: PacedExchange): void => {
    remove(exchange)
    exchange.request.socket.destroy()
  }
  /** Closes connections of the client with the most unread data until the total is well below the limit. */
  const shed = (): void => {
    const unread = exchanges
      .filter((exchange) => awaitedOf(exchange) === 'response')
      .map((exchange) => ({
        exchange,
        client: exchange.client,
        connection: exchange.request.socket,
        bytes: heldBytesOf(exchange) + bytesEach,
      }))
    const victims = chooseLargest(unread, unreadBytes - maxUnreadBytes * 0.75)
    endedConnections += victims.length
    for (const { exchange } of victims) exchange.guard(() => exchange.response.breakOffConnection())
    onEnded(victims.length)
  }
  const sweepMs = Math.max(10, Math.min(250, bodyTimeoutMs / 4, sendTimeoutMs / 4))
  const lookAtAll = (): void => {
    const nowMs = now()
    unreadBytes = 0
    // A copy: those that are too slow leave the list.
    for (const exchange of [...exchanges]) look(exchange, nowMs)
    if (unreadBytes > maxUnreadBytes) shed()
  }
  const sweep = setInterval(() => afterInput(lookAtAll), sweepMs)
  sweep.unref()

  return {
    add(exchange) {
      exchange.place = exchanges.length
      exchanges.push(exchange)
    },
    finish(exchange) {
      if (isBodyAwaited(exchange)) onceBodyOver(exchange, () => remove(exchange))
      else remove(exchange)
    },
    get size() {
      return exchanges.length
    },
    get isPressed() {
      return unreadBytes > maxUnreadBytes / 2
    },
    readUnread: () => ({ size: unreadBytes, capacity: maxUnreadBytes, evictions: endedConnections }),
    close: () => clearInterval(sweep),
  }
}
