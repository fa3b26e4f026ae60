import type { TableUse } from '../telemetry/telemetry.ts'
import { chooseLargest } from './largest-holders.ts'

/** An exchange that a slow client can delay. */
export type PacedExchange = {
  /** What the client has to do next; undefined while waiting for something else, such as the backend. */
  readonly waitsFor: 'body' | 'response' | undefined
  /** Grows as the client does it: bytes of the body, or pieces of the response that were taken. */
  readonly progress: number
  /** Kept by the watch: where the exchange stands among the others, -1 for nowhere. */
  place: number
  /** Called when the client is too slow. `waitsFor` says at what. */
  onTooSlow(): void
  /** Bytes of the response that the client has yet to take. */
  readonly heldBytes: number
  /** Who the client is. */
  readonly client: string
  /** What the exchange shares with others of the same connection. */
  readonly connection: object
  /** Ends the connection: what it holds is needed. */
  breakOffConnection(): void
}

export type PaceLimits = {
  /** Time in which a body must bring `minBodyRate` bytes for each second of it. */
  readonly bodyTimeoutMs: number
  /** Bytes a second; with 0 one byte in `bodyTimeoutMs` will do. */
  readonly minBodyRate: number
  /** Time in which something of what is ready for the client must be taken. */
  readonly sendTimeoutMs: number
  /** Bytes that all clients together may leave untaken. */
  readonly maxUnreadBytes: number
}

/** What Node holds for a response that is not taken, beside its bytes: some 20 KB over HTTP/2. */
const bytesEach = 20 * 1024

/** The exchanges in progress, and an eye on those that wait for their client. */
export type SlowClients = {
  add(exchange: PacedExchange): void
  delete(exchange: PacedExchange): void
  readonly size: number
  /** Bytes that clients had left untaken when it was last looked, and how many connections have been ended for them. */
  readUnread(): TableUse
  close(): void
}

/** Where an exchange stood when the present span of its time began. */
type Span = { readonly waitsFor: 'body' | 'response'; readonly progress: number; readonly sinceMs: number }

/**
 * Ends exchanges whose client sends its body or reads its response too slowly: each of them holds memory, and usually a
 * connection to the backend, and costs an attacker next to nothing.
 *
 * One periodic check covers all of them, so that no request needs a timer. Time spent waiting for the backend does not
 * count.
 *
 * A list of which each exchange knows its place, and no `Set`: that one is laid out anew every so many requests, and
 * each old layout, once it has grown old itself, keeps alive what was in it. It took 17 % of the CPU time of a request.
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
  const leastBodyBytes = Math.max(1, (minBodyRate * bodyTimeoutMs) / 1000)
  const exchanges: PacedExchange[] = []
  const spans = new Map<PacedExchange, Span>()
  let unreadBytes = 0
  let endedConnections = 0

  const look = (exchange: PacedExchange, nowMs: number): void => {
    const { waitsFor, progress } = exchange
    if (waitsFor === 'response') unreadBytes += exchange.heldBytes + bytesEach
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
    if (waitsFor === 'body' && advance >= leastBodyBytes) return begin()
    exchange.onTooSlow()
  }
  /** Closes connections of the client with the most unread data until the total is well below the limit. */
  const shed = (): void => {
    const unread = exchanges
      .filter(({ waitsFor }) => waitsFor === 'response')
      .map((exchange) => ({
        exchange,
        client: exchange.client,
        connection: exchange.connection,
        bytes: exchange.heldBytes + bytesEach,
      }))
    const victims = chooseLargest(unread, unreadBytes - maxUnreadBytes * 0.75)
    endedConnections += victims.length
    for (const { exchange } of victims) exchange.breakOffConnection()
    onEnded(victims.length)
  }
  const sweepMs = Math.max(10, Math.min(250, bodyTimeoutMs / 4, sendTimeoutMs / 4))
  const sweep = setInterval(() => {
    const nowMs = now()
    unreadBytes = 0
    // A copy: those that are too slow leave the list.
    for (const exchange of [...exchanges]) look(exchange, nowMs)
    if (unreadBytes > maxUnreadBytes) shed()
  }, sweepMs)
  sweep.unref()

  return {
    add(exchange) {
      exchange.place = exchanges.length
      exchanges.push(exchange)
    },
    delete(exchange) {
      if (exchange.place === -1) return
      const last = exchanges.pop()
      if (last && last !== exchange) {
        exchanges[exchange.place] = last
        last.place = exchange.place
      }
      exchange.place = -1
      if (spans.size > 0) spans.delete(exchange)
    },
    get size() {
      return exchanges.length
    },
    readUnread: () => ({ size: unreadBytes, capacity: maxUnreadBytes, evictions: endedConnections }),
    close: () => clearInterval(sweep),
  }
}
