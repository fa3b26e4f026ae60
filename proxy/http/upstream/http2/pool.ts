import type { Socket } from 'node:net'
import { ClientShares } from '../waiting/client-shares.ts'
import type { UpstreamExchange } from '../exchange.ts'
import type { ServerPool } from '../servers/server-pool.ts'
import { allBusy, stopped, stoppedReason, UpstreamFailure, type FailureKind } from '../failure.ts'
import { openWithin } from '../open-connection.ts'
import type { PoolOptions } from '../pool.ts'
import { startSweep } from '../sweep.ts'
import { ExchangeQueue } from '../waiting/queue.ts'
import { MAX_SESSION_STREAMS, UpstreamSession, type EndedRequest, type SessionOwner } from './session.ts'

export type Http2PoolOptions = PoolOptions & {
  readonly scheme: 'http' | 'https'
  /**
   * Called with a connection on which the backend has chosen HTTP/1.1, and with the queued requests; undefined if no protocol is
   * negotiated.
   */
  readonly onHttp1?: (socket: Socket, waiting: readonly UpstreamExchange[]) => void
}

const noUpgrade =
  'WebSocket and other upgrades need HTTP/1.1: the URL of the backend must begin with http:// or https://'

/**
 * A request with a larger head gets a connection of its own. nginx closes a connection for a header that is too large, with the requests of
 * all clients on it, and does not say what it accepts. The usual servers accept heads of this size, unless their limit is lowered.
 */
const MAX_SHARED_HEAD_BYTES = 8 * 1024
/** A client may use at most this many times the number of streams that are free. */
const MAX_TIMES_FREE = 3
/** How many times the free connections a client may use for requests with large heads: a single client gets half of them. */
const MAX_TIMES_FREE_LARGE = 1
/** Requests that can wait for a connection even if `maxQueued` is less. */
const FEWEST_QUEUED = 128

/**
 * HTTP/2 connections to the backend, each with many concurrent requests. Another one is opened when all open ones have as many
 * requests as the backend allows.
 *
 * A connection that takes no further request stays open until its requests have finished, perhaps for hours: it counts towards `maxStreams`
 * and not towards `maxConnections`. Otherwise, event streams on such connections would keep all other requests waiting.
 */
export class Http2Pool implements ServerPool, SessionOwner {
  readonly queuedUploads = 0
  readonly #options: Http2PoolOptions
  readonly #sessions = new Set<UpstreamSession>()
  readonly #queue: ExchangeQueue
  /** Requests with large heads, which wait for connections of their own. */
  readonly #largeQueue: ExchangeQueue
  readonly #shares: ClientShares
  /** The requests with large heads that have a connection. Few may, because a large head costs a client little. */
  readonly #largeShares: ClientShares
  /** Requests at a time that the backend allows on the connections of `maxConnections`. */
  #places: number
  readonly #sweep: NodeJS.Timeout
  /** Aborts the connection that is being opened; undefined if no connection is. At most one is opened at a time. */
  #giveUp: ((failure: UpstreamFailure) => void) | undefined
  /** Whether queued requests are being begun: one that fails at once makes room, for which the queue is served already. */
  #isServing = false
  #isEnded = false

  constructor(options: Http2PoolOptions) {
    const { maxConnections, maxQueued, queueMs } = options
    this.#options = options
    this.#queue = new ExchangeQueue(Math.max(maxQueued, FEWEST_QUEUED), queueMs)
    this.#largeQueue = new ExchangeQueue(Math.max(maxQueued, FEWEST_QUEUED), queueMs)
    this.#places = maxConnections * MAX_SESSION_STREAMS
    this.#shares = new ClientShares(this.#places, MAX_TIMES_FREE)
    this.#largeShares = new ClientShares(Math.max(2, maxConnections) + 1, MAX_TIMES_FREE_LARGE)
    this.#sweep = startSweep(options, () => this.#expire())
  }

  /** Connections without those of `streams`, and the one that is being opened. */
  get size(): number {
    return this.#sessions.size - this.streams + (this.#giveUp ? 1 : 0)
  }

  /** Connections that only finish the requests that they have, and then close. */
  get streams(): number {
    let finishing = 0
    for (const { isRetired } of this.#sessions) if (isRetired) finishing++
    return finishing
  }

  /** Whether another connection may be opened now. There is room for at least one that only finishes its requests. */
  get #mayConnect(): boolean {
    return this.size < this.#options.maxConnections && this.#mayConnectAtAll
  }

  /** Whether another connection may be opened now, even beyond `maxConnections`. */
  get #mayConnectAtAll(): boolean {
    const { maxConnections, maxStreams } = this.#options
    return !this.#giveUp && this.#sessions.size < maxConnections + Math.max(1, maxStreams)
  }

  get busy(): number {
    let open = this.queued
    for (const session of this.#sessions) open += session.open
    return open
  }

  get queued(): number {
    return this.#queue.size + this.#largeQueue.size
  }

  send(exchange: UpstreamExchange): void {
    if (this.#isEnded) return exchange.onFailure(stopped())
    if (exchange.upgrades)
      return exchange.onFailure(new UpstreamFailure('protocol', noUpgrade, { isOfRequest: true }))
    this.#resizeShares()
    if (isLarge(exchange)) return this.#sendLarge(exchange)
    const session = this.#shares.allows(exchange.client) ? this.#findRoom() : undefined
    if (session) return this.#begin(session, exchange)
    this.#queue.add(exchange, this.#options.now())?.onFailure(allBusy())
    this.#connectIfFull()
  }

  #sendLarge(exchange: UpstreamExchange): void {
    const mayHave = this.#largeShares.allows(exchange.client)
    const session = mayHave ? this.#findUnused() : undefined
    if (session) return this.#begin(session, exchange)
    this.#largeQueue.add(exchange, this.#options.now())?.onFailure(allBusy())
    if (mayHave) this.#connectForLarge()
  }

  retry(exchange: UpstreamExchange): void {
    this.send(exchange)
  }

  destroy(): void {
    this.#isEnded = true
    clearInterval(this.#sweep)
    for (const exchange of this.#takeAll()) exchange.onFailure(stopped())
    this.#giveUp?.(stopped())
    for (const session of [...this.#sessions]) session.destroy(stoppedReason)
  }

  onReady({ maxSessionStreams }: UpstreamSession): void {
    this.#places = this.#options.maxConnections * Math.max(1, maxSessionStreams)
    this.#serveQueues()
  }

  mayRetire(session: UpstreamSession): boolean {
    let others = 0
    for (const each of this.#sessions) if (each !== session && each.isRetired && each.open > 0) others++
    // Otherwise a client with long requests could retire all connections by resetting other requests. Requests with large heads have their
    // own bound; they must not keep a connection with many resets in use, which the backend would close.
    return others - this.#largeShares.total < Math.max(1, this.#options.maxConnections - 1)
  }

  onRoom(ended: EndedRequest): void {
    this.#sharesFor(ended).remove(ended.client)
    if (this.queued > 0) this.#serveQueues()
  }

  /** Another connection may be opened in place of the session, which may have long requests to finish. */
  onGoaway(): void {
    if (this.queued > 0) this.#serveQueues()
  }

  onSessionClosed(session: UpstreamSession, kind: FailureKind, message: string): void {
    this.#sessions.delete(session)
    if (!session.isReady) this.#failWaiting(new UpstreamFailure(kind === 'reset' ? 'refused' : kind, message))
    else if (this.queued > 0) this.#serveQueues()
  }

  /** Gives requests that connections only finish places of their own, so that they take none of the other connections. */
  #resizeShares(): void {
    // Each request with a large head is alone on a connection.
    let finishing = -this.#largeShares.total
    for (const { isRetired, open } of this.#sessions) if (isRetired) finishing += open
    this.#shares.resize(this.#places + Math.min(finishing, this.#options.maxStreams))
  }

  /** Requests with large heads have connections of their own, and so take no place of the others. */
  #sharesFor(request: EndedRequest): ClientShares {
    return isLarge(request) ? this.#largeShares : this.#shares
  }

  #begin(session: UpstreamSession, exchange: UpstreamExchange): void {
    this.#sharesFor(exchange).add(exchange.client)
    session.begin(exchange)
    // Unless its head was not sent.
    if (session.open === 1 && isLarge(exchange)) session.retire()
  }

  #serveQueues(): void {
    if (this.#isServing) return
    this.#isServing = true
    try {
      this.#resizeShares()
      this.#serveLarge()
      // A connection was opened for a request with a large head that has ended meanwhile.
      if (!this.#giveUp && this.size > this.#options.maxConnections) this.#findUnused()?.retire()
      this.#serveOthers()
    } finally {
      this.#isServing = false
    }
  }

  #serveLarge(): void {
    while (this.#largeQueue.size > 0) {
      const session = this.#findUnused()
      let allowed = 0
      const next = this.#largeQueue.take((client) => {
        const mayHave = this.#largeShares.allows(client)
        if (mayHave) allowed++
        return mayHave && session !== undefined
      })
      if (allowed > 0 && !session) this.#connectForLarge()
      if (!session || !next) return
      this.#begin(session, next)
    }
  }

  #serveOthers(): void {
    for (let session = this.#findRoom(); session; session = this.#findRoom()) {
      const next = this.#queue.take((client) => this.#shares.allows(client))
      if (!next) return
      this.#begin(session, next)
    }
    this.#connectIfFull()
  }

  #takeAll(): readonly UpstreamExchange[] {
    return [this.#queue, this.#largeQueue].flatMap((queue) => queue.takeWhere(() => true))
  }

  /** Returns a session without requests, for one with a large head. */
  #findUnused(): UpstreamSession | undefined {
    for (const session of this.#sessions) if (session.open === 0 && session.room > 0) return session
    return undefined
  }

  /** Returns the first session that has room, so that few are in use; a stalled session only if there is no other. */
  #findRoom(): UpstreamSession | undefined {
    let stalled: UpstreamSession | undefined
    for (const session of this.#sessions) {
      if (session.room <= 0) continue
      if (!session.isStalled) return session
      stalled ??= session
    }
    if (stalled && this.#mayConnect) this.#connect()
    return stalled
  }

  #connectIfFull(): void {
    if (this.#queue.size > 0 && this.#mayConnect) this.#connectIfNoneOpens()
  }

  #connectForLarge(): void {
    if (this.#mayConnectAtAll) this.#connectIfNoneOpens()
  }

  #connectIfNoneOpens(): void {
    for (const session of this.#sessions) if (!session.isReady) return
    this.#connect()
  }

  #connect(): void {
    const { open, connectMs } = this.#options
    this.#giveUp = openWithin(
      connectMs,
      open,
      (socket) => {
        this.#giveUp = undefined
        this.#onOpen(socket)
      },
      (failure) => {
        this.#giveUp = undefined
        this.#failWaiting(failure)
      },
    )
  }

  #onOpen(socket: Socket): void {
    const { onHttp1, maxAgeMs, now, random, connectMs } = this.#options
    if (onHttp1 && !isHttp2(socket)) return onHttp1(socket, this.#takeAll())
    const retireAtMs = now() + maxAgeMs * (1 - random() / 4)
    const session = new UpstreamSession(socket, this, { ...this.#options, retireAtMs })
    this.#sessions.add(session)
    setTimeout(() => {
      if (session.isReady || !this.#sessions.has(session)) return
      session.failedWith = 'connect-timeout'
      session.destroy('the backend did not answer with HTTP/2 in time')
    }, connectMs).unref()
  }

  /** No connection could be opened: fails the queued requests, unless an open session can serve them. */
  #failWaiting(failure: UpstreamFailure): void {
    for (const session of this.#sessions) if (session.isReady && !session.isRetired) return
    for (const exchange of this.#takeAll()) exchange.onFailure(failure)
  }

  #expire(): void {
    const nowMs = this.#options.now()
    const { maxConnections } = this.#options
    let retired = 0
    for (const { isRetired } of this.#sessions) if (isRetired) retired++
    for (const session of [...this.#sessions]) {
      const wasRetired = session.isRetired
      // Retired sessions with long requests stay open, so their number must be bounded.
      session.expire(nowMs, session.open === 0 || retired < maxConnections / 2)
      if (!wasRetired && session.isRetired) retired++
    }
    for (const queue of [this.#queue, this.#largeQueue]) queue.failOverdue(nowMs, allBusy)
    if (this.queued > 0) this.#serveQueues()
  }
}

function isLarge({ headBytes }: Pick<UpstreamExchange, 'headBytes'>): boolean {
  return headBytes > MAX_SHARED_HEAD_BYTES
}

function isHttp2(socket: Socket & { alpnProtocol?: unknown }): boolean {
  return socket.alpnProtocol === 'h2'
}
