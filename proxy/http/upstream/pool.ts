import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { afterInput } from '../../../shared/after-input.ts'
import { readAndWrite } from '../message/end-of-turn.ts'
import { ClientShares } from './client-shares.ts'
import { ConnectionLife } from './keep-alive/connection-life.ts'
import { UpstreamConnection, type UpstreamTimeouts } from './connection.ts'
import type { ServerPool, UpstreamExchange } from './exchange.ts'
import { allBusy, stopped, stoppedReason, type UpstreamFailure } from './failure.ts'
import { IdleLimit } from './keep-alive/idle-limit.ts'
import { openWithin } from './open-connection.ts'
import { ExchangeQueue } from './queue.ts'
import { UnansweredConnections, type Unanswered } from './keep-alive/unanswered.ts'
import { Uploads } from './uploads.ts'

export type PoolOptions = UpstreamTimeouts & {
  /** Opens a connection to the backend; `ready` is called once it can be written to (after the handshake, with TLS). */
  readonly open: (ready: () => void) => Socket
  readonly connectMs: number
  readonly maxConnections: number
  /** Maximum additional connections, for long responses. */
  readonly maxStreams: number
  /** Requests that may wait for a connection, and as many again for their turn to upload. */
  readonly maxQueued: number
  /** How long a request may wait for a connection. */
  readonly queueMs: number
  /** How long a connection is used, less up to a quarter at random, so that they are not all replaced at once. */
  readonly maxAgeMs: number
  /** Requests that a connection may serve; 0 means no limit. */
  readonly maxRequests: number
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** At least 0 and less than 1. */
  readonly random: () => number
}

/** The share of the connections that requests may use while their body is being uploaded. */
const uploadsShare = 0.75
/** How often the queues are checked. */
const queueCheckMs = 20
/** How often it is checked whether idle connections keep the backend from accepting others. */
const unansweredCheckMs = 10
/** A client may use at most this many times the number of connections that are free. */
const timesFree = 3

/**
 * Keep-alive connections to the backend. The most recently used one is reused first, so that surplus ones become idle
 * and close. While all are busy, requests wait in a bounded queue that serves the clients in turn. An idle one is closed where it seems
 * to keep the backend from accepting another (`UnansweredConnections`).
 *
 * A client can make a request last, by sending its body slowly, reading its response slowly, or asking for an endless
 * one. So that others still get a connection,
 *
 * - uploads use at most a share of the connections,
 * - a long response counts towards `maxStreams` instead of `maxConnections`,
 * - and of connections, uploads and streams, one client can use only so many that some are left (`ClientShares`).
 */
export class UpstreamPool implements ServerPool {
  readonly #options: PoolOptions
  readonly #idle: UpstreamConnection[] = []
  readonly #all = new Set<UpstreamConnection>()
  readonly #queue: ExchangeQueue
  readonly #uploads: Uploads
  readonly #uploadQueue: ExchangeQueue
  readonly #streamShares: ClientShares
  /**
   * Of the connections under `maxConnections`. Kept only while half of them are busy: below that, no client is limited.
   */
  #shares: ClientShares | undefined
  #queueCheck: NodeJS.Timeout | undefined
  readonly #idleLimit = new IdleLimit()
  readonly #unanswered = new UnansweredConnections()
  /** Connections that the backend has accepted. */
  #accepted = 0
  #unansweredCheck: NodeJS.Timeout | undefined
  readonly #sweep: NodeJS.Timeout
  /** Connections that are being opened: how to abort each, and its client. */
  readonly #connecting = new Map<(failure: UpstreamFailure) => void, string>()
  /** Set by `destroy`: no further connection is opened. */
  #ended = false

  constructor(options: PoolOptions) {
    const { maxConnections, maxStreams, maxQueued, queueMs, firstByteMs, idleMs } = options
    this.#options = options
    this.#queue = new ExchangeQueue(maxQueued, queueMs)
    this.#uploadQueue = new ExchangeQueue(maxQueued, queueMs)
    const maxUploads = Math.max(1, Math.floor(maxConnections * uploadsShare))
    this.#uploads = new Uploads(new ClientShares(maxUploads, timesFree))
    this.#streamShares = new ClientShares(maxStreams, 1)
    const shortestMs = Math.min(firstByteMs, idleMs, queueMs)
    this.#sweep = setInterval(
      () => afterInput(() => this.#expire()),
      Math.max(10, Math.min(500, shortestMs / 4)),
    )
    this.#sweep.unref()
  }

  /** Connections that count towards `maxConnections`. */
  get size(): number {
    return this.#all.size + this.#connecting.size - this.#streamShares.total
  }

  /** Connections that count towards `maxStreams`. */
  get streams(): number {
    return this.#streamShares.total
  }

  /** Requests that have a connection, are getting one, or wait. */
  get busy(): number {
    return this.#all.size + this.#connecting.size - this.#idle.length + this.queued + this.queuedUploads
  }

  /** Requests that wait for a connection. */
  get queued(): number {
    return this.#queue.size
  }

  /** Requests that wait for their turn to upload. */
  get queuedUploads(): number {
    return this.#uploadQueue.size
  }

  /** Sends a request over an idle connection, or a new one, or waits for one. Fails through `exchange.onFailure`. */
  send(exchange: UpstreamExchange): void {
    // A short body has mostly arrived by the time that this turn of the event loop is over.
    if (!exchange.bodyPending || this.#uploads.allows(exchange.client)) this.#send(exchange)
    else setImmediate(() => this.#sendOrWait(exchange))
  }

  /**
   * Sends a request again after its reused connection turned out to be closed: over a new connection, as other idle
   * ones may be closed too. To be called within the exchange's `onFailure`, before its place is given away.
   */
  sendAgain(exchange: UpstreamExchange): void {
    this.#connect(exchange)
  }

  /** Closes all connections now. Requests on them and in the queues fail. */
  destroy(): void {
    this.#ended = true
    clearInterval(this.#sweep)
    clearTimeout(this.#queueCheck)
    clearTimeout(this.#unansweredCheck)
    for (const queue of [this.#queue, this.#uploadQueue])
      for (const exchange of queue.takeWhere(() => true)) exchange.onFailure(stopped())
    for (const giveUp of this.#connecting.keys()) giveUp(stopped())
    for (const connection of this.#all) connection.abort(stoppedReason)
  }

  onAnswer(connection: UpstreamConnection, sentAtMs: number | undefined): void {
    const nowMs = this.#options.now()
    const { unanswered } = connection
    if (sentAtMs !== undefined) this.#unanswered.noteTime(nowMs - sentAtMs, unanswered)
    if (!unanswered) return
    connection.unanswered = undefined
    this.#accept(connection)
    this.#unanswered.noteAccepted(unanswered, this.#accepted)
    if (this.#idle.length > 0) this.#unanswered.noteFree(nowMs)
  }

  onClosedIdle({ idleSinceMs }: UpstreamConnection): void {
    if (idleSinceMs !== undefined) this.#idleLimit.noteClosed(this.#options.now() - idleSinceMs)
  }

  onFree(connection: UpstreamConnection): void {
    this.#leavePlace(connection)
    this.#idle.push(connection)
    // A connection that was counted as a stream: its place has been given away.
    if (this.size > this.#options.maxConnections) return connection.destroy()
    if (this.#unanswered.size > 0 && connection.isAccepted) {
      const nowMs = this.#options.now()
      this.#unanswered.noteFree(nowMs)
      if (this.#unanswered.takeDue(nowMs, this.#accepted)) return connection.destroy()
      this.#checkUnansweredSoon()
    }
    const next = this.#nextQueued()
    if (next) this.#send(next)
  }

  onGone(connection: UpstreamConnection): void {
    this.#all.delete(connection)
    this.#leaveUnanswered(connection)
    if (connection.isAccepted) this.#accepted--
    const at = this.#idle.indexOf(connection)
    if (at === -1) this.#leavePlace(connection)
    else this.#idle.splice(at, 1)
  }

  /** Opens a connection for the next request in the queue. */
  onPlaceFree(): void {
    if (this.size >= this.#options.maxConnections) return
    const next = this.#nextQueued()
    if (next) this.#connect(next)
  }

  onRequestSent(exchange: UpstreamExchange): void {
    if (this.#uploads.end(exchange)) this.#serveUploads()
  }

  readonly #mayUploadNow = (client: string): boolean =>
    this.#uploads.allows(client) && this.#mayConnect(client)

  readonly #mayConnect = (client: string): boolean => {
    const { maxConnections } = this.#options
    const busy = this.size - this.#idle.length
    if (busy * 2 < maxConnections) {
      if (busy * 4 < maxConnections) this.#shares = undefined
      return true
    }
    return (this.#shares ??= this.#countShares()).allows(client)
  }

  #countShares(): ClientShares {
    const shares = new ClientShares(this.#options.maxConnections, timesFree)
    const idle = new Set(this.#idle)
    for (const connection of this.#all)
      if (!connection.streams && !idle.has(connection)) shares.add(connection.client)
    for (const client of this.#connecting.values()) shares.add(client)
    return shares
  }

  /** Called when a connection stops serving a client, for the shares. */
  #leavePlace(connection: UpstreamConnection): void {
    if (connection.streams) {
      connection.streams = false
      this.#streamShares.remove(connection.client)
    } else this.#shares?.remove(connection.client)
  }

  #hasFreePlace(): boolean {
    return this.#idle.length > 0 || this.size < this.#options.maxConnections
  }

  #send(exchange: UpstreamExchange): void {
    if (!this.#hasFreePlace() || !this.#mayConnect(exchange.client)) return this.#wait(exchange, this.#queue)
    const connection = this.#takeIdle()
    if (connection) this.#begin(connection, exchange)
    else this.#connect(exchange)
  }

  /** The most recently used one, unless the backend may be about to close it. */
  #takeIdle(): UpstreamConnection | undefined {
    if (this.#idleLimit.isKnown && this.size < this.#options.maxConnections) {
      const nowMs = this.#options.now()
      const idleMs = (connection?: UpstreamConnection): number => nowMs - (connection?.idleSinceMs ?? nowMs)
      this.#idleLimit.noteOpen(idleMs(this.#idle[0]))
      if (!this.#idleLimit.allows(idleMs(this.#idle.at(-1)))) return undefined
    }
    return this.#idle.pop()
  }

  #sendOrWait(exchange: UpstreamExchange): void {
    if (exchange.cancelled) return
    if (!exchange.bodyPending || this.#uploads.allows(exchange.client)) this.#send(exchange)
    else this.#wait(exchange, this.#uploadQueue)
  }

  #wait(exchange: UpstreamExchange, queue: ExchangeQueue): void {
    const turnedAway = queue.add(exchange, this.#options.now())
    this.#queueCheck ??= setTimeout(() => this.#checkQueues(), queueCheckMs)
    turnedAway?.onFailure(allBusy())
  }

  #begin(connection: UpstreamConnection, exchange: UpstreamExchange): void {
    this.#shares?.add(exchange.client)
    this.#uploads.begin(exchange)
    if (!connection.isAccepted) connection.unanswered = this.#addUnanswered()
    connection.begin(exchange)
  }

  #connect(exchange: UpstreamExchange): void {
    if (this.#ended) return exchange.onFailure(stopped())
    const { open, connectMs } = this.#options
    const { client } = exchange
    this.#shares?.add(client)
    this.#uploads.begin(exchange)
    const unanswered = this.#addUnanswered()
    const onOpen = (socket: Socket): void => {
      this.#connecting.delete(giveUp)
      const connection = this.#add(socket)
      connection.unanswered = unanswered
      if (connection.isAccepted || exchange.cancelled) this.#leaveUnanswered(connection)
      if (exchange.cancelled) {
        connection.client = client
        this.onRequestSent(exchange)
        connection.releaseUnused()
      } else connection.begin(exchange)
    }
    const giveUp = openWithin(connectMs, open, onOpen, (failure) => {
      this.#connecting.delete(giveUp)
      this.#unanswered.delete(unanswered)
      this.#shares?.remove(client)
      this.onRequestSent(exchange)
      exchange.onFailure(failure)
      this.onPlaceFree()
    })
    this.#connecting.set(giveUp, client)
  }

  /** Uses a connection that somebody else has opened, if there is a place for it. */
  adopt(socket: Socket): void {
    if (this.#ended || this.size >= this.#options.maxConnections) socket.destroy()
    else this.#add(socket).releaseUnused()
  }

  #add(socket: Socket): UpstreamConnection {
    const { maxRequests, maxAgeMs, now, random } = this.#options
    const life = new ConnectionLife(maxRequests, now() + maxAgeMs * (1 - random() / 4))
    const connection = new UpstreamConnection(socket, this, this.#options, life, now)
    this.#all.add(connection)
    if (socket instanceof TLSSocket) this.#accept(connection)
    return connection
  }

  #accept(connection: UpstreamConnection): void {
    connection.isAccepted = true
    this.#accepted++
  }

  #addUnanswered(): Unanswered {
    const unanswered = this.#unanswered.add(this.#options.now())
    if (this.#idle.length > 0) this.#checkUnansweredSoon()
    return unanswered
  }

  #leaveUnanswered(connection: UpstreamConnection): void {
    if (!connection.unanswered) return
    this.#unanswered.delete(connection.unanswered)
    connection.unanswered = undefined
  }

  #checkUnansweredSoon(): void {
    this.#unansweredCheck ??= setTimeout(() => afterInput(() => this.#checkUnanswered()), unansweredCheckMs)
  }

  /** Closes idle connections for those that are not answered. Runs periodically while there are both. */
  #checkUnanswered(): void {
    // Answers that are here show that the connections they are on are accepted.
    readAndWrite()
    this.#unansweredCheck = undefined
    while (this.#unanswered.size > 0) {
      const idle = this.#idle.find(({ isAccepted }) => isAccepted)
      if (!idle) return
      if (!this.#unanswered.takeDue(this.#options.now(), this.#accepted)) return this.#checkUnansweredSoon()
      idle.destroy()
    }
  }

  #nextQueued(): UpstreamExchange | undefined {
    if (this.#queue.size === 0) return undefined
    let next = this.#queue.take(this.#mayConnect)
    while (next?.bodyPending && !this.#uploads.allows(next.client)) {
      this.#wait(next, this.#uploadQueue)
      next = this.#queue.take(this.#mayConnect)
    }
    return next
  }

  /** Runs periodically while requests are queued. */
  #checkQueues(): void {
    this.#queueCheck = undefined
    if (this.#queue.size > 0) this.#partStreams()
    this.#serveUploads()
    if (this.#queue.size > 0 || this.#uploadQueue.size > 0)
      this.#queueCheck ??= setTimeout(() => this.#checkQueues(), queueCheckMs)
  }

  /** Counts connections with long responses as streams, and gives their places to queued requests. */
  #partStreams(): void {
    for (const connection of this.#all) {
      if (connection.streams || !connection.lasts() || !this.#streamShares.allows(connection.client)) continue
      this.#leavePlace(connection)
      connection.streams = true
      this.#streamShares.add(connection.client)
    }
    while (this.#hasFreePlace()) {
      const next = this.#nextQueued()
      if (!next) return
      this.#send(next)
    }
  }

  /** Starts queued uploads as far as their share allows, and requests whose body has arrived meanwhile. */
  #serveUploads(): void {
    if (this.#uploadQueue.size === 0) return
    for (const exchange of this.#uploadQueue.takeWhere(({ bodyPending }) => !bodyPending))
      this.#send(exchange)
    while (this.#hasFreePlace()) {
      const next = this.#uploadQueue.take(this.#mayUploadNow)
      if (!next) return
      this.#send(next)
    }
  }

  #expire(): void {
    // Responses that are here make places free, for requests that are not late then.
    readAndWrite()
    const nowMs = this.#options.now()
    for (const connection of this.#all) connection.expire(nowMs)
    for (const queue of [this.#queue, this.#uploadQueue]) queue.failOverdue(nowMs, allBusy)
  }
}
