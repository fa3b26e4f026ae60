import { connect, constants, type ClientHttp2Session } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { UpstreamTimeouts } from '../response-deadline.ts'
import type { UpstreamExchange } from '../exchange.ts'
import type { FailureKind } from '../failure.ts'
import { STREAM_WINDOW, UpstreamStream, type StreamOwner } from './stream.ts'

const { NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants

/** Maximum concurrent streams of a session, even if the backend allows more: further ones go to other sessions. */
export const MAX_SESSION_STREAMS = 256
/**
 * Requests that may be reset on a session before it takes no further ones. Backends count resets by connection, and close a connection that
 * floods them with resets (CVE-2023-44487). Requests of other clients on the connection would fail, too.
 */
const MAX_RESETS = 100
/** Bytes of cancelled requests on a session that may wait to be sent. Clients cancel requests faster than these are reset. */
const MAX_CANCELLED_BYTES = 1024 * 1024
/** A session on which nothing happens is closed. */
const IDLE_MS = 60_000
/** How long a session without requests may take to close. */
const LINGER_MS = 5_000
/** Bytes of all responses on a session that the backend may send ahead. */
const SESSION_WINDOW = 1024 * 1024

const sessionOptions = {
  settings: { enablePush: false, initialWindowSize: STREAM_WINDOW },
  // Repeated fields of a client are passed on.
  strictSingleValueFields: false,
  // MiB that a connection may make this process hold.
  maxSessionMemory: 64,
  maxHeaderListPairs: 2_000,
  // More than the maximum of MAX_HEADER_SIZE and the gateway's own headers. A stream with a larger head fails (default: 64 KiB).
  maxSendHeaderBlockLength: 4 * 1024 * 1024,
}

export type SessionOptions = UpstreamTimeouts & {
  readonly scheme: 'http' | 'https'
  /** When the session stops accepting requests, on the clock of `now`. */
  readonly retireAtMs: number
  /** Requests that the session may serve; 0 means no limit. */
  readonly maxRequests: number
  readonly now: () => number
}

/** A request that has no stream any more. */
export type EndedRequest = Pick<UpstreamExchange, 'client' | 'headBytes'>

/** Callbacks of a session to its pool. */
export type SessionOwner = {
  /** Called when the session can be used: the backend has sent its settings, or changed them. */
  onReady(session: UpstreamSession): void
  /**
   * Whether the session may stop accepting requests: another connection can be opened for them, even if the requests in flight last long.
   */
  mayRetire(session: UpstreamSession): boolean
  /** Called when a stream of the session has closed: the client has one stream less, and another request can be sent. */
  onRoom(ended: EndedRequest): void
  /** Called when the backend has said that it takes no further request on the session. */
  onGoaway(): void
  /** Called when the session has closed and its requests have failed. */
  onSessionClosed(session: UpstreamSession, kind: FailureKind, message: string): void
}

/** An HTTP/2 connection to the backend. */
export class UpstreamSession implements StreamOwner {
  readonly session: ClientHttp2Session
  readonly scheme: 'http' | 'https'
  failedWith: FailureKind = 'reset'
  /** Whether the backend has closed the connection because of the requests on it. */
  blamesRequests = false
  isReady = false
  /** Whether the session accepts no further requests. */
  isRetired = false
  readonly #socket: Duplex
  readonly #owner: SessionOwner
  readonly #options: SessionOptions
  readonly #streams = new Set<UpstreamStream>()
  #requests = 0
  #resets = 0
  #lastStreamId = Number.POSITIVE_INFINITY
  #idleSinceMs: number
  #message = 'the backend closed the connection'

  constructor(socket: Duplex, owner: SessionOwner, options: SessionOptions) {
    this.#socket = socket
    this.#owner = owner
    this.#options = options
    this.scheme = options.scheme
    this.#idleSinceMs = options.now()
    // Otherwise Node would not notice that the backend has ended the connection.
    socket.allowHalfOpen = false
    this.session = connect('http://backend', { ...sessionOptions, createConnection: () => socket })
    this.session.setLocalWindowSize(SESSION_WINDOW)
    this.session.on('remoteSettings', () => {
      if (this.isRetired) return
      this.isReady = true
      owner.onReady(this)
    })
    this.session.on('goaway', (code: number, lastStreamId: number) => {
      this.#lastStreamId = lastStreamId
      this.isRetired = true
      this.blamesRequests = code !== NGHTTP2_NO_ERROR && code !== NGHTTP2_INTERNAL_ERROR
      this.#message = `the backend closed the connection (GOAWAY, code ${code})`
      owner.onGoaway()
    })
    this.session.on('error', (error: NodeJS.ErrnoException) => {
      this.#message = error.message
      if (error.code === 'ERR_HTTP2_ERROR') this.failedWith = 'protocol'
    })
    this.session.on('close', () => this.#onClose())
  }

  get open(): number {
    return this.#streams.size
  }

  /** How many more requests the session can take. */
  get room(): number {
    const { session } = this
    if (!this.isReady || this.isRetired || session.closed || session.destroyed) return 0
    return this.maxSessionStreams - this.#streams.size
  }

  /** Requests at a time: as many as the backend allows, and at most `MAX_SESSION_STREAMS`. */
  get maxSessionStreams(): number {
    const { maxConcurrentStreams = MAX_SESSION_STREAMS } = this.session.remoteSettings
    return Math.min(maxConcurrentStreams, MAX_SESSION_STREAMS)
  }

  /** Whether the backend has stopped reading some request's body. The flow-control window of the connection may then be used up. */
  get isStalled(): boolean {
    for (const stream of this.#streams) if (stream.isStalled) return true
    return false
  }

  get isReused(): boolean {
    return this.#requests > this.#streams.size
  }

  /** Begins a request. The session must have room. */
  begin(exchange: UpstreamExchange): void {
    const { maxRequests, now } = this.#options
    if (++this.#requests === maxRequests) this.retire()
    const stream = new UpstreamStream(exchange, this, this.#options, now)
    this.#streams.add(stream)
    stream.begin()
  }

  isBeyondLast(streamId: number | undefined): boolean {
    return streamId !== undefined && streamId > this.#lastStreamId
  }

  /** Resets the oldest of the cancelled requests, which the backend has most likely taken, if too many of their bytes wait. */
  onCancelled(): void {
    let waiting = 0
    for (const { cancelledBytes } of this.#streams) waiting += cancelledBytes
    for (const stream of this.#streams) {
      if (waiting <= MAX_CANCELLED_BYTES) return
      const { cancelledBytes } = stream
      waiting -= cancelledBytes
      if (cancelledBytes > 0) stream.resetEarly()
    }
  }

  onReset(kind: FailureKind): void {
    // The connection itself may be dead.
    if (kind === 'timeout' || kind === 'idle-timeout') return this.retire()
    if (++this.#resets >= MAX_RESETS && this.#owner.mayRetire(this)) this.retire()
  }

  onClosed(stream: UpstreamStream): void {
    if (!this.#streams.delete(stream)) return
    this.#idleSinceMs = this.#options.now()
    // Many may end in the time between two sweeps.
    if (this.isRetired && this.#streams.size === 0 && !this.session.closed) this.session.close()
    this.#owner.onRoom(stream)
  }

  /** Takes no further request, and closes when its requests in flight are finished. */
  retire(): void {
    this.isRetired = true
  }

  /** Called by the sweep. @param nowMs monotonic @param mayRetire another connection may be opened in its place */
  expire(nowMs: number, mayRetire: boolean): void {
    for (const stream of [...this.#streams]) stream.expire(nowMs)
    // A reset stream stays until the backend takes the reset.
    const isBusy = this.#streams.values().some(({ isFinished }) => !isFinished)
    if (isBusy) this.#idleSinceMs = nowMs
    const idleMs = nowMs - this.#idleSinceMs
    if (
      !this.isRetired &&
      this.isReady &&
      mayRetire &&
      (nowMs >= this.#options.retireAtMs || idleMs >= IDLE_MS)
    )
      this.retire()
    if (!this.isRetired || isBusy) return
    if (idleMs >= LINGER_MS) this.#socket.destroy()
    else if (!this.session.closed) this.session.close()
  }

  /** Ends the session now. Its requests fail. */
  destroy(reason: string): void {
    this.isRetired = true
    for (const stream of [...this.#streams]) stream.abort(reason)
    this.session.destroy(undefined, NGHTTP2_NO_ERROR)
    this.#socket.destroy()
  }

  #onClose(): void {
    this.isRetired = true
    for (const stream of [...this.#streams]) stream.sessionClosed()
    this.#owner.onSessionClosed(this, this.failedWith, this.#message)
  }
}
