import type { Socket } from 'node:net'
import { UpstreamConnection, type UpstreamExchange, type UpstreamTimeouts } from './connection.ts'
import { failureOfConnect, UpstreamFailure, type FailureKind } from './failure.ts'
import { WaitingExchanges } from './waiting-exchanges.ts'

export type PoolOptions = UpstreamTimeouts & {
  /** Opens a connection to the backend; `ready` is called once it can be written to (after the handshake, with TLS). */
  readonly open: (ready: () => void) => Socket
  readonly connectMs: number
  readonly maxConnections: number
  /** Requests that may wait for a connection, and as many again for their turn to upload. */
  readonly maxQueued: number
  /** How long a request may wait for a connection. */
  readonly queueMs: number
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** Part of the connections that requests may hold whose body is still on its way from the client. */
const uploadsShare = 0.75
/** How often those that wait for their turn to upload are looked at. */
const uploadsCheckMs = 20

const endedReason = 'the gateway stops and the grace period is over'

/**
 * The connections to the one backend. The connection used last is used next, so that those not needed fall idle and end.
 * Where all are busy requests wait in turn, in a queue with a bound.
 *
 * A client can make its body last, and a connection is held for as long as that. So bodies on their way never get all
 * connections: those beyond their share wait until it is their turn or their body has arrived.
 */
export class UpstreamPool {
  readonly #options: PoolOptions
  readonly #idle: UpstreamConnection[] = []
  readonly #all = new Set<UpstreamConnection>()
  readonly #queue: WaitingExchanges
  /** Those that have a connection, or will, and whose body has not wholly arrived. */
  readonly #uploads = new Set<UpstreamExchange>()
  readonly #maxUploads: number
  readonly #uploadQueue: WaitingExchanges
  #uploadCheck: NodeJS.Timeout | undefined
  readonly #sweep: NodeJS.Timeout
  /** How to give up each connection that is being opened. */
  readonly #connecting = new Set<(failure: UpstreamFailure) => void>()
  /** From now on no connection is opened, as nobody would end it. */
  #ended = false

  constructor(options: PoolOptions) {
    this.#options = options
    this.#queue = new WaitingExchanges(options.maxQueued, options.queueMs)
    this.#uploadQueue = new WaitingExchanges(options.maxQueued, options.queueMs)
    this.#maxUploads = Math.max(1, Math.floor(options.maxConnections * uploadsShare))
    const shortestMs = Math.min(options.firstByteMs, options.idleMs, options.queueMs)
    this.#sweep = setInterval(() => this.#expire(), Math.max(10, Math.min(500, shortestMs / 4)))
    this.#sweep.unref()
  }

  get size(): number {
    return this.#all.size + this.#connecting.size
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
    if (this.#mayBegin(exchange)) this.#send(exchange)
    else setImmediate(() => this.#sendOrWait(exchange))
  }

  /**
   * Sends a request again whose connection has gone: over a new one in the place of the old, as any that has served
   * before may be gone too. To be called within its `onFailure`, as long as nobody else has that place.
   */
  sendAgain(exchange: UpstreamExchange): void {
    this.#connect(exchange)
  }

  /** Ends every connection now; requests on them fail, and those that wait for one. */
  destroy(): void {
    this.#ended = true
    clearInterval(this.#sweep)
    clearTimeout(this.#uploadCheck)
    for (const queue of [this.#queue, this.#uploadQueue])
      for (const exchange of queue.takeWhere(() => true)) exchange.onFailure(ended())
    for (const giveUp of this.#connecting) giveUp(ended())
    for (const connection of this.#all) connection.abort(endedReason)
  }

  onFree(connection: UpstreamConnection): void {
    const next = this.#nextQueued()
    if (next) this.#begin(connection, next)
    else this.#idle.push(connection)
  }

  onGone(connection: UpstreamConnection): void {
    this.#all.delete(connection)
    const at = this.#idle.indexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
  }

  /** The longest waiting request gets a connection of its own. */
  onPlaceFree(): void {
    if (this.size >= this.#options.maxConnections) return
    const next = this.#nextQueued()
    if (next) this.#connect(next)
  }

  onRequestSent(exchange: UpstreamExchange): void {
    if (this.#uploads.delete(exchange)) this.#serveUploads()
  }

  #mayBegin(exchange: UpstreamExchange): boolean {
    return this.#uploads.size < this.#maxUploads || !exchange.bodyPending
  }

  #hasFreePlace(): boolean {
    return this.#idle.length > 0 || this.size < this.#options.maxConnections
  }

  #send(exchange: UpstreamExchange): void {
    const connection = this.#idle.pop()
    if (connection) this.#begin(connection, exchange)
    else if (this.size < this.#options.maxConnections) this.#connect(exchange)
    else if (!this.#queue.add(exchange, this.#options.now())) exchange.onFailure(busy())
  }

  #sendOrWait(exchange: UpstreamExchange): void {
    if (exchange.cancelled) return
    if (this.#mayBegin(exchange)) this.#send(exchange)
    else if (this.#uploadQueue.add(exchange, this.#options.now()))
      this.#uploadCheck ??= setTimeout(() => this.#serveUploads(), uploadsCheckMs)
    else exchange.onFailure(busy())
  }

  #begin(connection: UpstreamConnection, exchange: UpstreamExchange): void {
    if (exchange.bodyPending) this.#uploads.add(exchange)
    connection.begin(exchange)
  }

  #connect(exchange: UpstreamExchange): void {
    if (this.#ended) return exchange.onFailure(ended())
    const { open, connectMs, now } = this.#options
    if (exchange.bodyPending) this.#uploads.add(exchange)
    const onError = (error: Error): void => giveUp(failureOfConnect(error))
    const onClose = (): void => fail('refused', 'the backend closed the connection at once')
    const socket = open(() => {
      settle()
      const connection = new UpstreamConnection(socket, this, this.#options, now)
      this.#all.add(connection)
      if (exchange.cancelled) {
        this.onRequestSent(exchange)
        connection.release()
      } else connection.begin(exchange)
    })
    const settle = (): void => {
      clearTimeout(timer)
      socket.off('error', onError)
      socket.off('close', onClose)
      this.#connecting.delete(giveUp)
    }
    const giveUp = (failure: UpstreamFailure): void => {
      settle()
      socket.on('error', () => undefined)
      socket.destroy()
      this.onRequestSent(exchange)
      exchange.onFailure(failure)
      this.onPlaceFree()
    }
    const fail = (kind: FailureKind, message: string): void => giveUp(new UpstreamFailure(kind, message))
    this.#connecting.add(giveUp)
    socket.on('error', onError)
    socket.on('close', onClose)
    const timer = setTimeout(() => fail('connect-timeout', 'no connection to the backend in time'), connectMs)
  }

  #nextQueued(): UpstreamExchange | undefined {
    let next = this.#queue.take()
    while (next && !this.#mayBegin(next)) {
      this.#sendOrWait(next)
      next = this.#queue.take()
    }
    return next
  }

  /** Begins uploads as far as there is room for them, and those whose body has arrived meanwhile. */
  #serveUploads(): void {
    clearTimeout(this.#uploadCheck)
    this.#uploadCheck = undefined
    if (this.#uploadQueue.size === 0) return
    for (const exchange of this.#uploadQueue.takeWhere(({ bodyPending }) => !bodyPending))
      this.#send(exchange)
    while (this.#uploads.size < this.#maxUploads && this.#hasFreePlace()) {
      const next = this.#uploadQueue.take()
      if (!next) return
      this.#send(next)
    }
    if (this.#uploadQueue.size > 0) this.#uploadCheck = setTimeout(() => this.#serveUploads(), uploadsCheckMs)
  }

  #expire(): void {
    const nowMs = this.#options.now()
    for (const connection of this.#all) connection.expire(nowMs)
    for (const queue of [this.#queue, this.#uploadQueue])
      for (const exchange of queue.takeOverdue(nowMs)) exchange.onFailure(busy())
  }
}

function ended(): UpstreamFailure {
  return new UpstreamFailure('aborted', endedReason)
}

function busy(): UpstreamFailure {
  return new UpstreamFailure('busy', 'no connection to the backend became free')
}
