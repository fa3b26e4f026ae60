import type { Socket } from 'node:net'
import { UpstreamConnection, type UpstreamExchange, type UpstreamTimeouts } from './connection.ts'
import { UpstreamFailure, type FailureKind } from './failure.ts'

export type PoolOptions = UpstreamTimeouts & {
  /** Opens a connection to the backend; `ready` is called once it can be written to (after the handshake, with TLS). */
  readonly open: (ready: () => void) => Socket
  readonly connectMs: number
  readonly maxConnections: number
  /** Requests that may wait for a connection. */
  readonly maxQueued: number
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/**
 * The connections to the one backend. The connection used last is used next, so that those not needed fall idle and end.
 * Where all are busy requests wait in turn, in a queue with a bound.
 */
export class UpstreamPool {
  readonly #options: PoolOptions
  readonly #idle: UpstreamConnection[] = []
  readonly #all = new Set<UpstreamConnection>()
  readonly #queue: UpstreamExchange[] = []
  readonly #sweep: NodeJS.Timeout
  #connecting = 0
  #closed: (() => void) | undefined

  constructor(options: PoolOptions) {
    this.#options = options
    const shortestMs = Math.min(options.firstByteMs, options.idleMs)
    this.#sweep = setInterval(() => this.#expire(), Math.max(10, Math.min(500, shortestMs / 4)))
    this.#sweep.unref()
  }

  get size(): number {
    return this.#all.size + this.#connecting
  }

  get queued(): number {
    return this.#queue.length
  }

  get maxConnections(): number {
    return this.#options.maxConnections
  }

  /** Sends a request over an idle connection, or a new one, or waits for one. Fails through `exchange.onFailure`. */
  send(exchange: UpstreamExchange): void {
    const connection = this.#idle.pop()
    if (connection) connection.begin(exchange)
    else this.sendOnFresh(exchange)
  }

  /** As `send`, but never over a connection that has served before. */
  sendOnFresh(exchange: UpstreamExchange): void {
    if (this.size < this.#options.maxConnections) this.#connect(exchange)
    else if (this.#queue.length < this.#options.maxQueued) this.#queue.push(exchange)
    else exchange.onFailure(new UpstreamFailure('busy', 'every connection to the backend is in use'))
  }

  /** Ends idle connections at once and the others as they fall free. Resolves when none is left. */
  async close(): Promise<void> {
    clearInterval(this.#sweep)
    const done = new Promise<void>((resolve) => (this.#closed = resolve))
    for (const connection of this.#idle.splice(0)) connection.destroy()
    this.#finishClosing()
    await done
  }

  /** Ends every connection now; requests on them fail. */
  destroy(): void {
    clearInterval(this.#sweep)
    for (const connection of this.#all) connection.abort('the gateway is stopping')
  }

  onFree(connection: UpstreamConnection): void {
    const next = this.#nextQueued()
    if (next) connection.begin(next)
    else if (this.#closed) connection.destroy()
    else this.#idle.push(connection)
  }

  onGone(connection: UpstreamConnection): void {
    this.#all.delete(connection)
    const at = this.#idle.indexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
    this.#serveQueue()
    this.#finishClosing()
  }

  #connect(exchange: UpstreamExchange): void {
    const { open, connectMs, now } = this.#options
    this.#connecting++
    const onError = (error: Error): void => fail('refused', error.message)
    const onClose = (): void => fail('refused', 'the backend closed the connection at once')
    const socket = open(() => {
      settle()
      const connection = new UpstreamConnection(socket, this, this.#options, now)
      this.#all.add(connection)
      if (exchange.cancelled) this.onFree(connection)
      else connection.begin(exchange)
    })
    const settle = (): void => {
      clearTimeout(timer)
      socket.off('error', onError)
      socket.off('close', onClose)
      this.#connecting--
    }
    const fail = (kind: FailureKind, message: string): void => {
      settle()
      socket.on('error', () => undefined)
      socket.destroy()
      exchange.onFailure(new UpstreamFailure(kind, message))
      this.#serveQueue()
      this.#finishClosing()
    }
    socket.on('error', onError)
    socket.on('close', onClose)
    const timer = setTimeout(() => fail('connect-timeout', 'no connection to the backend in time'), connectMs)
  }

  /** A place has become free: the longest waiting request gets a connection of its own. */
  #serveQueue(): void {
    if (this.size >= this.#options.maxConnections) return
    const next = this.#nextQueued()
    if (next) this.#connect(next)
  }

  #nextQueued(): UpstreamExchange | undefined {
    let next = this.#queue.shift()
    while (next?.cancelled) next = this.#queue.shift()
    return next
  }

  #expire(): void {
    const nowMs = this.#options.now()
    for (const connection of this.#all) connection.expire(nowMs)
  }

  #finishClosing(): void {
    if (this.#closed && this.size === 0) this.#closed()
  }
}
