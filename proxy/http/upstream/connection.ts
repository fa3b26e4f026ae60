import type { Socket } from 'node:net'
import { MAX_BUFFERED_BYTES, readAtEndOfTurn, type Reader } from '../message/end-of-turn.ts'
import type { ConnectionLife } from './keep-alive/connection-life.ts'
import type { UpstreamChannel, UpstreamExchange, UpstreamRequest } from './exchange.ts'
import { UpstreamFailure, type FailureKind } from './failure.ts'
import { shareMemory } from './open-connection.ts'
import { RequestWriter } from './request-writer.ts'
import { ResponseDeadline, type UpstreamTimeouts } from './response-deadline.ts'
import { ResponseSyntaxError, type ResponseHead } from './response/response-head.ts'
import { ResponseParser, type ResponseSink } from './response/response-parser.ts'
import type { Unanswered } from './keep-alive/unanswered.ts'
import { endOnWriteErrors, readOnAfterError, surviveWriteErrors } from './write-errors.ts'

/** Callbacks of a connection to its pool. */
export type ConnectionOwner = {
  /** Called when no more of the exchange's request will be sent, possibly more than once. */
  onRequestSent(exchange: UpstreamExchange): void
  /**
   * The backend has begun to answer.
   *
   * @param sentAtMs when the last byte of the request was sent, in monotonic milliseconds; undefined if it has not been sent
   */
  onAnswer(connection: UpstreamConnection, sentAtMs: number | undefined): void
  /** The backend has closed the connection while it was free. */
  onClosedIdle(connection: UpstreamConnection): void
  /** The exchange has ended, and the connection can serve the next. */
  onFree(connection: UpstreamConnection): void
  /** The connection has closed. Its exchange may still use its place, to retry in `onFailure`. */
  onClosed(connection: UpstreamConnection): void
  /** The place of a closed connection is free for a queued request. */
  onPlaceFree(): void
}

/** How long to wait for a response that the backend may have sent before it stopped reading the request. */
const RESPONSE_AFTER_RESET_MS = 1_000

/**
 * A connection to the backend: one exchange at a time and no pipelining, so that a lost connection fails one request
 * only.
 *
 * It is the state machine of the socket and of the exchange on it, in one file because any event may end either. `RequestWriter`,
 * `ResponseParser`, `ResponseDeadline` and `ConnectionLife` do the rest.
 */
export class UpstreamConnection implements UpstreamChannel, ResponseSink, Reader {
  readonly socket: Socket
  readonly #owner: ConnectionOwner
  readonly #life: ConnectionLife
  readonly #now: () => number
  readonly #writer: RequestWriter
  readonly #parser: ResponseParser
  #exchange: UpstreamExchange | undefined
  /** Bytes received in this turn for a response that has not begun; read at the end of the turn. */
  #buffered: Buffer | undefined
  /** The client whose exchange the connection serves, or served last. */
  client = ''
  /** Set by the pool if the connection counts towards `maxStreams`, because its response is a long one. */
  isStream = false
  /** Set by the pool while the connection has an exchange and the backend has never answered on it. */
  unanswered: Unanswered | undefined
  /** Whether the backend has accepted the connection: it has answered on it, or completed the TLS handshake. */
  isAccepted = false
  /** When the connection became idle, in monotonic milliseconds; undefined during an exchange, and before the first. */
  idleSinceMs: number | undefined
  /** Whether more of the request can be sent. */
  isWritable = true
  #hadBegun = false
  #answered = false
  /** An interim response to this exchange has arrived. */
  #hasInterimResponse = false
  #requestSent = false
  #sentAtMs = 0
  #responseDone = false
  #reusable = true
  #closesAfterResponse = false
  #isClosed = false
  readonly #deadline: ResponseDeadline

  constructor(
    socket: Socket,
    owner: ConnectionOwner,
    timeouts: UpstreamTimeouts,
    life: ConnectionLife,
    now: () => number,
  ) {
    this.socket = socket
    this.#owner = owner
    this.#deadline = new ResponseDeadline(timeouts, now)
    this.#writer = new RequestWriter(socket)
    this.#parser = new ResponseParser()
    this.#life = life
    this.#now = now
    socket.setNoDelay(true)
    surviveWriteErrors(socket)
    shareMemory(socket, true)
    socket.on('data', this.#onData)
    socket.on('end', this.#onSocketEnd)
    socket.on('error', this.#onSocketError)
    socket.on('close', this.#onSocketClose)
  }

  /** Begins the next exchange. The connection must be free. */
  begin(exchange: UpstreamExchange): void {
    this.#life.beginExchange(this.#now)
    this.#exchange = exchange
    this.client = exchange.client
    this.idleSinceMs = undefined
    this.#answered = false
    this.#hasInterimResponse = false
    this.#hadBegun = false
    this.#requestSent = false
    this.#responseDone = false
    this.#writer.begin()
    this.#deadline.clear()
    this.#parser.expect(exchange.method, this)
    try {
      exchange.start(this)
    } catch (error) {
      this.#fail('exception', 'exception while sending the request', error)
    }
  }

  /** Returns whether the response, or an interim one, had already begun at the previous call. If so, it is a long one. */
  markLongResponse(): boolean {
    if (!(this.#answered || this.#hasInterimResponse) || !this.#exchange) return false
    const before = this.#hadBegun
    this.#hadBegun = true
    return before
  }

  writeHead(request: UpstreamRequest, beforeSent?: () => void): Socket {
    this.#closesAfterResponse = request.logsIn
    this.#writer.writeHead(request, beforeSent)
    if (!request.hasBody) this.#endRequest()
    return this.socket
  }

  write(piece: Buffer): void {
    this.#writer.write(piece)
  }

  endBody(): void {
    this.#writer.endBody()
    this.#endRequest()
  }

  /** The request's last byte has been handed to the socket. */
  #endRequest(): void {
    this.#requestSent = true
    if (this.#exchange) this.#owner.onRequestSent(this.#exchange)
    if (this.#answered) return
    this.#sentAtMs = this.#deadline.awaitAnswer()
  }

  bodyStalled(): void {
    if (!this.#answered) this.#deadline.awaitAnswer()
  }

  bodyDrained(): void {
    if (!this.#answered) this.#deadline.clear()
  }

  /** No memory is reserved for the bytes that Node still reads after a pause, until its buffer has 64 KiB. `waitingBytes` counts them. */
  get maxWaitingBytes(): number {
    return 0
  }

  get waitingBytes(): number {
    return this.socket.readableLength
  }

  pause(): void {
    this.socket.pause()
    this.#deadline.clear()
  }

  resume(): void {
    if (this.#isClosed) return
    this.socket.resume()
    this.#deadline.awaitMore()
  }

  failFor(error: unknown): void {
    this.#fail('exception', 'exception while forwarding the request', error)
  }

  abort(reason: string): void {
    this.#fail('aborted', reason)
  }

  /** Called by the sweep: ends the connection if the deadline of its state has passed. */
  expire(nowMs: number): void {
    if (!this.#deadline.hasPassed(nowMs) || this.#buffered) return
    if (this.#exchange) this.#fail(this.#deadline.kind, 'the backend did not answer in time')
    else this.destroy()
  }

  destroy(): void {
    this.#close()
    this.socket.destroy()
  }

  onInterimResponse(head: ResponseHead): void {
    this.#reportFirstByte()
    this.#hasInterimResponse = true
    this.#deadline.extendAnswerTimeout()
    this.#exchange?.onInterimResponse(head)
  }

  onHead(head: ResponseHead): void {
    this.#reportFirstByte()
    this.#answered = true
    if (head.keepAliveMs !== undefined) this.#life.setAnnouncedKeepAlive(head.keepAliveMs)
    this.#exchange?.onHead(head)
  }

  #reportFirstByte(): void {
    if (this.#hasInterimResponse || this.#answered) return
    this.#owner.onAnswer(this, this.#requestSent ? this.#sentAtMs : undefined)
  }

  onBody(chunk: Buffer, last: boolean): void {
    this.#exchange?.onBody(chunk, last)
  }

  onTrailers(fields: readonly string[]): void {
    this.#exchange?.onTrailers(fields)
  }

  onEnd(persistent: boolean): void {
    const exchange = this.#exchange
    this.#exchange = undefined
    this.#responseDone = true
    this.#deadline.clear()
    // The backend would read the rest of a request that is not completely sent as the next request.
    this.#reusable = persistent && this.#requestSent && this.isWritable && !this.#closesAfterResponse
    if (exchange && !this.#requestSent) this.#owner.onRequestSent(exchange)
    exchange?.onEnd()
  }

  onUpgrade(head: ResponseHead, rest: Buffer): void {
    const exchange = this.#exchange
    // The rest of the body would be the first bytes of the other protocol (RFC 9110 section 7.8).
    if (!this.#requestSent)
      throw new ResponseSyntaxError('101 Switching Protocols before the request has ended')
    this.#close()
    this.socket.off('data', this.#onData)
    this.socket.off('end', this.#onSocketEnd)
    this.socket.off('error', this.#onSocketError)
    this.socket.off('close', this.#onSocketClose)
    endOnWriteErrors(this.socket)
    shareMemory(this.socket, false)
    try {
      exchange?.onUpgrade(head, this.socket, rest)
    } catch (error) {
      this.socket.destroy()
      exchange?.onFailure(
        new UpstreamFailure('exception', 'exception while upgrading the connection', { cause: error }),
      )
    }
  }

  readonly #onData = (chunk: Buffer): void => {
    // Otherwise these bytes would be passed on as the response to a request that the backend has not seen (RFC 9112 section 9.2).
    if (this.#exchange && this.#writer.isUnsent)
      this.#fail('reset', 'the backend sent a response without a request')
    else if (this.#buffered) {
      this.#buffered = Buffer.concat([this.#buffered, chunk])
      this.readBuffered()
    } else if (this.#readsAtEndOfTurn && chunk.length <= MAX_BUFFERED_BYTES) {
      this.#buffered = chunk
      readAtEndOfTurn(this)
    } else this.#receive(chunk)
  }

  /**
   * Whether received bytes are read at the end of the turn: only if they begin the response to a completely sent request. Other bytes are
   * read at once, because later they might pass for a response. Bytes that may begin a tunnel are read at once, too, because the tunnel
   * takes the connection over.
   */
  get #readsAtEndOfTurn(): boolean {
    const exchange = this.#exchange
    if (!exchange || exchange.upgrades) return false
    return this.#requestSent && !this.#writer.isUnsent && !this.#answered
  }

  readBuffered(): void {
    const chunk = this.#buffered
    this.#buffered = undefined
    if (chunk && !this.#isClosed) this.#receive(chunk)
  }

  #receive(chunk: Buffer): void {
    try {
      this.#parser.execute(chunk)
      if (!this.#isClosed && !this.#responseDone) this.#exchange?.onReadEnd()
    } catch (error) {
      this.#failWith(error)
      return
    }
    if (this.#isClosed) return
    if (this.#responseDone) this.release()
    else if (this.#answered && !this.socket.isPaused()) this.#deadline.awaitMore()
  }

  readonly #onSocketEnd = (): void => {
    this.readBuffered()
    if (this.#isClosed) return
    if (!this.#exchange) this.#owner.onClosedIdle(this)
    try {
      // After a reset that a failed write has reported, reading finds an ordinary end of the connection.
      if (this.isWritable && this.#parser.finish()) this.destroy()
      else this.#fail('reset', 'the backend closed the connection')
    } catch (error) {
      this.#failWith(error)
    }
  }

  #failWith(error: unknown): void {
    if (error instanceof ResponseSyntaxError) this.#fail('protocol', error.message)
    else this.#fail('exception', 'exception while forwarding the response', error)
  }

  readonly #onSocketError = (error: Error): void => {
    this.readBuffered()
    // A backend that refuses an upload may close before it has read all of it. No more of the request can be sent then, but the response
    // may be on its way, or received and unread.
    if (this.#exchange && !this.socket.destroyed && !this.#writer.isUnsent) {
      readOnAfterError(this.socket)
      this.isWritable = false
      if (!this.#answered) this.#deadline.awaitWithin(RESPONSE_AFTER_RESET_MS, 'reset')
    } else {
      if (!this.#exchange && !this.#isClosed) this.#owner.onClosedIdle(this)
      this.#fail('reset', error.message)
    }
  }

  readonly #onSocketClose = (): void => {
    this.readBuffered()
    this.#fail('reset', 'the backend closed the connection')
  }

  /** Frees the connection for the next exchange, for as long as the backend is expected to keep it open. */
  release(): void {
    this.#responseDone = false
    this.idleSinceMs = this.#now()
    this.#free(this.#life.endExchange(this.idleSinceMs))
  }

  /** Releases a connection whose exchange was cancelled before it began. */
  releaseUnused(): void {
    this.#free(this.#life.beginWaiting(this.#now()))
  }

  #free(idleUntilMs: number | undefined): void {
    if (!this.#reusable || idleUntilMs === undefined || !this.socket.readable) return this.destroy()
    // Reading may have been paused for a slow client in the same read that completed the response.
    if (this.socket.isPaused()) this.socket.resume()
    this.#deadline.keepUntil(idleUntilMs)
    this.#owner.onFree(this)
  }

  #fail(kind: FailureKind, message: string, cause?: unknown): void {
    const exchange = this.#exchange
    const isReset = kind === 'reset'
    const onReusedConnection = isReset && this.#life.isReused && this.#parser.untouched
    this.socket.destroy()
    const isUnprocessed = isReset && this.#writer.isUnsent
    this.#close(exchange && new UpstreamFailure(kind, message, { onReusedConnection, isUnprocessed, cause }))
  }

  /** Ends the exchange, and reports to the owner, once, that the connection has closed. */
  #close(failure?: UpstreamFailure): void {
    const exchange = this.#exchange
    this.#exchange = undefined
    if (exchange && !this.#requestSent) this.#owner.onRequestSent(exchange)
    if (this.#isClosed) return
    this.#isClosed = true
    this.#writer.close()
    this.#owner.onClosed(this)
    try {
      if (failure) exchange?.onFailure(failure)
    } finally {
      this.#owner.onPlaceFree()
    }
  }
}
