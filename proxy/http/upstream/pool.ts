import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { readAndWrite } from '../message/end-of-turn.ts'
import { ClientShares } from './waiting/client-shares.ts'
import { BackendBacklog } from './keep-alive/backend-backlog.ts'
import { ConnectionLife } from './keep-alive/connection-life.ts'
import { UpstreamConnection } from './connection.ts'
import type { UpstreamTimeouts } from './response-deadline.ts'
import type { UpstreamExchange } from './exchange.ts'
import type { ServerPool } from './servers/server-pool.ts'
import { stopped, stoppedReason, type UpstreamFailure } from './failure.ts'
import { IdleLimit } from './keep-alive/idle-limit.ts'
import { openWithin } from './open-connection.ts'
import { startSweep } from './sweep.ts'
import { Uploads } from './waiting/uploads.ts'
import { WaitingExchanges, type WaitingOptions } from './waiting/waiting-exchanges.ts'

export type PoolOptions = UpstreamTimeouts &
  WaitingOptions & {
    /** Opens a connection to the backend; `ready` is called once it can be written to (after the handshake, with TLS). */
    readonly open: (ready: () => void) => Socket
    readonly connectMs: number
    readonly maxConnections: number
    /** Maximum additional connections, for long responses. */
    readonly maxStreams: number
    /** How long a connection is used, less up to a quarter at random, so that they are not all replaced at once. */
    readonly maxAgeMs: number
    /** Requests that a connection may serve; 0 means no limit. */
    readonly maxRequests: number
    /** At least 0 and less than 1. */
    readonly random: () => number
  }

/** The share of the connections that requests may use while their body is being uploaded. */
const UPLOADS_SHARE = 0.75
/** A client may use at most this many times as many connections as are free. */
const MAX_TIMES_FREE = 3

/**
 * Keep-alive connections to the backend. The most recently used connection is reused first, so that surplus ones become idle and close.
 * While all are busy, requests wait in a bounded queue that serves the clients in turn. An idle connection is closed if it seems to keep
 * the backend from accepting another (`BackendBacklog`).
 *
 * A client can make a request last by sending its body slowly, reading its response slowly, or asking for an endless one. So that other
 * clients still get a connection,
 *
 * - uploads use at most a share of the connections,
 * - a long response counts towards `maxStreams` instead of `maxConnections`,
 * - and one client cannot use all connections, uploads or streams (`ClientShares`).
 *
 * All decisions about which exchange gets a connection are in this file, because each depends on all counts of the pool.
 */
export class UpstreamPool implements ServerPool {
  readonly #options: PoolOptions
  readonly #idle: UpstreamConnection[] = []
  readonly #all = new Set<UpstreamConnection>()
  readonly #waiting: WaitingExchanges
  readonly #uploads: Uploads
  readonly #streamShares: ClientShares
  /**
   * Shares of the connections under `maxConnections`. Counted only while half of them are busy: below that, no client is limited.
   */
  #shares: ClientShares | undefined
  readonly #idleLimit = new IdleLimit()
  readonly #backlog: BackendBacklog
  readonly #sweep: NodeJS.Timeout
  /** Connections that are being opened: how to abort each, and its client. */
  readonly #connecting = new Map<(failure: UpstreamFailure) => void, string>()
  /** Set by `destroy`: no further connection is opened. */
  #ended = false

  constructor(options: PoolOptions) {
    const { maxConnections, maxStreams } = options
    this.#options = options
    this.#backlog = new BackendBacklog(this.#idle, options.now)
    this.#waiting = new WaitingExchanges(options, () => this.#serveWaiting())
    const maxUploads = Math.max(1, Math.floor(maxConnections * UPLOADS_SHARE))
    this.#uploads = new Uploads(new ClientShares(maxUploads, MAX_TIMES_FREE))
    this.#streamShares = new ClientShares(maxStreams, 1)
    this.#sweep = startSweep(options, () => this.#expire())
  }

  /** Connections that count towards `maxConnections`. */
  get size(): number {
    return this.#all.size + this.#connecting.size - this.#streamShares.total
  }

  /** Connections that count towards `maxStreams`. */
  get streams(): number {
    return this.#streamShares.total
  }

  get busy(): number {
    return this.#all.size + this.#connecting.size - this.#idle.length + this.queued + this.queuedUploads
  }

  /** Requests that wait for a connection. */
  get queued(): number {
    return this.#waiting.size
  }

  /** Requests that wait for their turn to upload. */
  get queuedUploads(): number {
    return this.#waiting.uploads
  }

  /** Sends a request over an idle connection, or a new one, or waits for one. */
  send(exchange: UpstreamExchange): void {
    // A short body has usually arrived when this turn of the event loop ends.
    if (!exchange.isBodyPending || this.#uploads.allows(exchange.client)) this.#send(exchange)
    else setImmediate(() => this.#sendOrWait(exchange))
  }

  /**
   * Sends a request again whose connection was closed. It gets a new connection, because idle ones may be closed too, in the place of the
   * closed one: this is called before that place is given to another.
   */
  retry(exchange: UpstreamExchange): void {
    this.#connect(exchange)
  }

  destroy(): void {
    this.#ended = true
    clearInterval(this.#sweep)
    this.#backlog.close()
    this.#waiting.close(stopped)
    for (const giveUp of this.#connecting.keys()) giveUp(stopped())
    for (const connection of this.#all) connection.abort(stoppedReason)
  }

  onAnswer(connection: UpstreamConnection, sentAtMs: number | undefined): void {
    this.#backlog.onAnswer(connection, sentAtMs)
  }

  onClosedIdle({ idleSinceMs }: UpstreamConnection): void {
    if (idleSinceMs !== undefined) this.#idleLimit.recordClosed(this.#options.now() - idleSinceMs)
  }

  onFree(connection: UpstreamConnection): void {
    this.#freePlace(connection)
    this.#idle.push(connection)
    // If the connection was counted as a stream, its place has been given to another one.
    if (this.size > this.#options.maxConnections) return connection.destroy()
    if (this.#backlog.displaces(connection)) return connection.destroy()
    const next = this.#nextQueued()
    if (next) this.#send(next)
  }

  onClosed(connection: UpstreamConnection): void {
    this.#all.delete(connection)
    this.#backlog.onClosed(connection)
    const at = this.#idle.indexOf(connection)
    if (at === -1) this.#freePlace(connection)
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
    const shares = new ClientShares(this.#options.maxConnections, MAX_TIMES_FREE)
    const idle = new Set(this.#idle)
    for (const connection of this.#all)
      if (!connection.isStream && !idle.has(connection)) shares.add(connection.client)
    for (const client of this.#connecting.values()) shares.add(client)
    return shares
  }

  /** A connection stops serving its client: gives back the client's place. */
  #freePlace(connection: UpstreamConnection): void {
    if (connection.isStream) {
      connection.isStream = false
      this.#streamShares.remove(connection.client)
    } else this.#shares?.remove(connection.client)
  }

  #hasFreePlace(): boolean {
    return this.#idle.length > 0 || this.size < this.#options.maxConnections
  }

  #send(exchange: UpstreamExchange): void {
    if (!this.#hasFreePlace() || !this.#mayConnect(exchange.client)) return this.#waiting.add(exchange)
    const connection = this.#takeIdle()
    if (connection) this.#begin(connection, exchange)
    else this.#connect(exchange)
  }

  /** Takes the most recently used idle connection, unless the backend may be about to close it. */
  #takeIdle(): UpstreamConnection | undefined {
    if (this.#idleLimit.isKnown && this.size < this.#options.maxConnections) {
      const nowMs = this.#options.now()
      const idleMs = (connection?: UpstreamConnection): number => nowMs - (connection?.idleSinceMs ?? nowMs)
      this.#idleLimit.recordOpen(idleMs(this.#idle[0]))
      if (!this.#idleLimit.allows(idleMs(this.#idle.at(-1)))) return undefined
    }
    return this.#idle.pop()
  }

  #sendOrWait(exchange: UpstreamExchange): void {
    if (exchange.isCancelled) return
    if (!exchange.isBodyPending || this.#uploads.allows(exchange.client)) this.#send(exchange)
    else this.#waiting.addUpload(exchange)
  }

  #begin(connection: UpstreamConnection, exchange: UpstreamExchange): void {
    this.#shares?.add(exchange.client)
    this.#uploads.begin(exchange)
    if (!connection.isAccepted) connection.unanswered = this.#backlog.add()
    connection.begin(exchange)
  }

  #connect(exchange: UpstreamExchange): void {
    if (this.#ended) return exchange.onFailure(stopped())
    const { open, connectMs } = this.#options
    const { client } = exchange
    this.#shares?.add(client)
    this.#uploads.begin(exchange)
    const unanswered = this.#backlog.add()
    const onOpen = (socket: Socket): void => {
      this.#connecting.delete(giveUp)
      const connection = this.#add(socket)
      connection.unanswered = unanswered
      if (connection.isAccepted || exchange.isCancelled) this.#backlog.leave(connection)
      if (exchange.isCancelled) {
        connection.client = client
        this.onRequestSent(exchange)
        connection.releaseUnused()
      } else connection.begin(exchange)
    }
    const giveUp = openWithin(connectMs, open, onOpen, (failure) => {
      this.#connecting.delete(giveUp)
      this.#backlog.delete(unanswered)
      this.#shares?.remove(client)
      this.onRequestSent(exchange)
      exchange.onFailure(failure)
      this.onPlaceFree()
    })
    this.#connecting.set(giveUp, client)
  }

  /** Takes over an open connection if `maxConnections` allows it; otherwise closes it. */
  adopt(socket: Socket): void {
    if (this.#ended || this.size >= this.#options.maxConnections) socket.destroy()
    else this.#add(socket).releaseUnused()
  }

  #add(socket: Socket): UpstreamConnection {
    const { maxRequests, maxAgeMs, now, random } = this.#options
    const life = new ConnectionLife(maxRequests, now() + maxAgeMs * (1 - random() / 4))
    const connection = new UpstreamConnection(socket, this, this.#options, life, now)
    this.#all.add(connection)
    if (socket instanceof TLSSocket) this.#backlog.accept(connection)
    return connection
  }

  #nextQueued(): UpstreamExchange | undefined {
    if (this.#waiting.size === 0) return undefined
    let next = this.#waiting.take(this.#mayConnect)
    while (next?.isBodyPending && !this.#uploads.allows(next.client)) {
      this.#waiting.addUpload(next)
      next = this.#waiting.take(this.#mayConnect)
    }
    return next
  }

  /** Called periodically while requests are queued. */
  #serveWaiting(): void {
    if (this.#waiting.size > 0) this.#separateStreams()
    this.#serveUploads()
  }

  /** Counts connections with long responses towards `maxStreams`, and gives their places to queued requests. */
  #separateStreams(): void {
    for (const connection of this.#all) {
      if (
        connection.isStream ||
        !connection.markLongResponse() ||
        !this.#streamShares.allows(connection.client)
      )
        continue
      this.#freePlace(connection)
      connection.isStream = true
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
    if (this.#waiting.uploads === 0) return
    for (const exchange of this.#waiting.takeUploaded()) this.#send(exchange)
    while (this.#hasFreePlace()) {
      const next = this.#waiting.takeUpload(this.#mayUploadNow)
      if (!next) return
      this.#send(next)
    }
  }

  #expire(): void {
    // Reads buffered responses first: they may free a connection for a request that would be overdue.
    readAndWrite()
    const nowMs = this.#options.now()
    for (const connection of this.#all) connection.expire(nowMs)
    this.#waiting.failOverdue(nowMs)
  }
}
