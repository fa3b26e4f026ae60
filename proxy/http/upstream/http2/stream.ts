import { constants, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2'
import type { Writable } from 'node:stream'
import { detachBuffer } from '../../message/detach-buffer.ts'
import { askForNothing } from '../../message/pause-reading.ts'
import type { UpstreamChannel, UpstreamExchange, UpstreamRequest } from '../exchange.ts'
import { UpstreamFailure, type FailureFacts, type FailureKind } from '../failure.ts'
import { ResponseSyntaxError } from '../response/response-head.ts'
import { InterimBytes } from '../response/interim-bytes.ts'
import { ResponseDeadline, type UpstreamTimeouts } from '../response-deadline.ts'
import { headTooLarge, listBytes, readResponseHead, requestFields } from './fields.ts'

const { NGHTTP2_CANCEL, NGHTTP2_FLAG_END_STREAM, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = constants

/** Bytes of a response that the backend may send ahead. */
export const STREAM_WINDOW = 128 * 1024
/**
 * A cancelled request that the backend has had for less time is not reset yet. Servers of hyper, such as Deno, close a connection
 * with 20 requests that were reset before the server took them, and with it the requests of other clients.
 */
const RESET_AFTER_MS = 1_000
/** Bytes of a response to a cancelled request that are dropped. If there are more, the stream is reset. */
const MAX_DROPPED_BYTES = 64 * 1024

/** Callbacks of a stream to its session. */
export type StreamOwner = {
  readonly session: ClientHttp2Session
  readonly scheme: 'http' | 'https'
  /** Whether the backend has not begun this stream: its GOAWAY names an earlier one as the last. */
  isBeyondLast(streamId: number | undefined): boolean
  /** The reason why the session failed, if it did. */
  readonly failedWith: FailureKind
  /** Whether the backend has closed the connection because of the requests on it. */
  readonly blamesRequests: boolean
  /** Whether earlier streams of the session have ended. */
  readonly isReused: boolean
  /** The request was cancelled, and its stream is not reset yet. */
  onCancelled(): void
  /** The stream is reset: the request was given up, or answered before all of it was sent. */
  onReset(kind: FailureKind): void
  /** The stream has closed: another one can be opened in its place. */
  onClosed(stream: UpstreamStream): void
}

/** One exchange on an HTTP/2 stream. */
export class UpstreamStream implements UpstreamChannel {
  readonly client: string
  readonly headBytes: number
  /** Whether more of the request can be sent. */
  isWritable = true
  /** The backend does not read the request body. */
  isStalled = false
  readonly #owner: StreamOwner
  readonly #deadline: ResponseDeadline
  readonly #now: () => number
  #exchange: UpstreamExchange | undefined
  #stream: ClientHttp2Stream | undefined
  #streamId: number | undefined
  /** The end of the response has arrived, and not a reset in its place. */
  #hasWholeResponse = false
  #answered = false
  readonly #interim = new InterimBytes()
  #requestSent = false
  #beganMs = 0
  /** When to reset the stream of a cancelled request that has not ended by itself. */
  #resetAtMs = Number.POSITIVE_INFINITY
  #droppedBytes = 0
  /** Bytes of the body that have not arrived; undefined if the backend did not declare its length. */
  #left: number | undefined

  constructor(exchange: UpstreamExchange, owner: StreamOwner, timeouts: UpstreamTimeouts, now: () => number) {
    this.#exchange = exchange
    this.client = exchange.client
    this.headBytes = exchange.headBytes
    this.#owner = owner
    this.#deadline = new ResponseDeadline(timeouts, now)
    this.#now = now
  }

  /** Whether the exchange has been notified of its end. */
  get isFinished(): boolean {
    return this.#exchange === undefined
  }

  /** Bytes of the body that wait to be sent, and keep memory, although the request was cancelled. */
  get cancelledBytes(): number {
    return this.#resetAtMs === Number.POSITIVE_INFINITY ? 0 : (this.#stream?.writableLength ?? 0)
  }

  /** Resets the stream of a cancelled request, whose time has not come yet. */
  resetEarly(): void {
    this.#reset('aborted')
  }

  /** Sends the request. */
  begin(): void {
    try {
      this.#exchange?.start(this)
    } catch (error) {
      if (error instanceof UpstreamFailure) this.#fail(error.kind, error.message, error)
      else this.#fail('exception', 'exception while sending the request', { cause: error })
    }
    if (!this.#stream) this.#owner.onClosed(this)
  }

  writeHead(request: UpstreamRequest): Writable {
    const { session, scheme } = this.#owner
    const fields = requestFields(request, scheme)
    // Netty and Jetty close the connection, with the requests of all clients on it.
    const { maxHeaderListSize = Infinity } = session.remoteSettings
    if (listBytes(fields) > maxHeaderListSize)
      throw new UpstreamFailure('protocol', headTooLarge, { isOfRequest: true })
    const stream = session.request(fields, { endStream: !request.hasBody })
    this.#stream = stream
    this.#beganMs = this.#now()
    this.#streamId = stream.id
    askForNothing(stream)
    this.#watchPushes(stream)
    stream.on('headers', (_fields, _flags, raw: readonly string[]) =>
      this.#guard(() => this.#onInterimResponse(raw)),
    )
    stream.on('response', (_fields, flags, raw: readonly string[]) => {
      this.#guard(() => this.#onHead(request, raw, (flags & NGHTTP2_FLAG_END_STREAM) !== 0))
      // Registered only now: Node queues `response`, and could emit content that came with the head before it. That content would be lost.
      stream.on('data', (chunk: Buffer) => this.#guard(() => this.#onData(chunk)))
    })
    stream.on('trailers', (_fields, _flags, raw: readonly string[]) =>
      this.#guard(() => this.#exchange?.onTrailers(raw)),
    )
    stream.on('end', () => this.#guard(() => this.#onEnd()))
    // Each error is followed by `close`.
    stream.on('error', () => undefined)
    stream.on('close', () => this.#onClose())
    if (!request.hasBody) this.#endRequest()
    return stream
  }

  write(piece: Buffer): void {
    this.#stream?.write(piece)
  }

  endBody(): void {
    this.#stream?.end()
    this.#endRequest()
  }

  #endRequest(): void {
    this.#requestSent = true
    this.isStalled = false
    if (!this.#answered) this.#deadline.awaitAnswer()
  }

  bodyStalled(): void {
    this.isStalled = true
    if (!this.#answered) this.#deadline.awaitAnswer()
  }

  bodyDrained(): void {
    this.isStalled = false
    if (!this.#answered) this.#deadline.clear()
  }

  get maxWaitingBytes(): number {
    return STREAM_WINDOW
  }

  get waitingBytes(): number {
    return this.#stream?.readableLength ?? 0
  }

  pause(): void {
    this.#stream?.pause()
    this.#deadline.clear()
  }

  resume(): void {
    if (!this.#exchange) return
    this.#stream?.resume()
    this.#deadline.awaitMore()
  }

  failFor(error: unknown): void {
    this.#fail('exception', 'exception while forwarding the request', { cause: error })
  }

  abort(reason: string): void {
    this.#fail('aborted', reason)
  }

  /** Called by the sweep: fails the exchange if the deadline of its state has passed, and resets the stream of a cancelled one. */
  expire(nowMs: number): void {
    if (nowMs >= this.#resetAtMs) this.#reset('aborted')
    if (this.#deadline.hasPassed(nowMs)) this.#fail(this.#deadline.kind, 'the backend did not answer in time')
  }

  /** The session has closed, and may not emit `close` on its streams any more. */
  sessionClosed(): void {
    this.#onClose()
  }

  #onInterimResponse(raw: readonly string[]): void {
    if (!this.#exchange) return
    this.#interim.add(listBytes(raw))
    this.#deadline.extendAnswerTimeout()
    this.#exchange.onInterimResponse(readResponseHead(raw))
  }

  #onHead({ method }: UpstreamRequest, raw: readonly string[], isWhole: boolean): void {
    if (!this.#exchange) return
    const head = readResponseHead(raw, isWhole)
    const { framing, status } = head
    if (framing.kind === 'length' && method !== 'HEAD' && status !== 304) this.#left = framing.bytes
    this.#answered = true
    this.#deadline.awaitMore()
    this.#exchange.onHead(head)
    // The part of the body that came with the head is passed on first, so that both are written at once.
    setImmediate(() => this.#guard(() => this.#exchange?.onReadEnd()))
  }

  #onData(chunk: Buffer): void {
    if (!this.#exchange) {
      if ((this.#droppedBytes += chunk.length) > MAX_DROPPED_BYTES) this.#reset('aborted')
      return
    }
    if (this.#left !== undefined && (this.#left -= chunk.length) < 0)
      throw new ResponseSyntaxError('body longer than its Content-Length')
    if (!this.#stream?.isPaused()) this.#deadline.awaitMore()
    this.#exchange.onBody(chunk, false)
  }

  #onEnd(): void {
    // A stream that was reset emits `end` too, and then `close`.
    if (!this.#answered || !this.#hasWholeResponse || (this.#left !== undefined && this.#left > 0)) return
    const exchange = this.#exchange
    this.#exchange = undefined
    this.#deadline.clear()
    // The backend has answered without the rest of the request.
    if (!this.#requestSent) {
      this.isWritable = false
      this.#reset('aborted', NGHTTP2_NO_ERROR)
    }
    exchange?.onEnd()
  }

  /**
   * Watches `push`, by which Node passes content, and the end of it, to a stream.
   *
   * - Node ends a stream that is reset with NO_ERROR like one that the backend has ended, and has no event that distinguishes them. After a
   *   reset, however, the stream is already closed.
   * - Content is a slice of one read of the session, which has data of all its streams. Content that waits must not keep the whole read in
   *   memory.
   */
  #watchPushes(stream: ClientHttp2Stream): void {
    const push = stream.push.bind(stream)
    stream.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
      if (chunk === null && !stream.closed) this.#hasWholeResponse = true
      const waits = Buffer.isBuffer(chunk) && stream.isPaused()
      return push(waits ? detachBuffer(chunk) : chunk, encoding)
    }
  }

  /** Passes on the bytes that arrived while the response was paused. If the connection is lost, Node does not emit them any more. */
  #passWaiting(): void {
    const stream = this.#stream
    if (!stream || !this.#exchange || !this.#answered) return
    stream.removeAllListeners('data')
    this.#guard(() => {
      for (let waiting = readNext(stream); waiting; waiting = readNext(stream)) this.#onData(waiting)
      this.#onEnd()
    })
  }

  #onClose(): void {
    this.#passWaiting()
    const code = this.#stream?.rstCode
    const isUnprocessed = code === NGHTTP2_REFUSED_STREAM || this.#owner.isBeyondLast(this.#streamId)
    const { failedWith, blamesRequests, isReused, session } = this.#owner
    const isLost = session.destroyed && failedWith === 'reset'
    this.#fail(
      session.destroyed ? failedWith : 'reset',
      `the backend closed the stream (code ${code ?? 0})`,
      {
        isUnprocessed: isUnprocessed && !this.#answered,
        onReusedConnection: !this.#answered && (isUnprocessed || (isLost && isReused)),
        // Backends reset what they do not accept, such as a path that they cannot parse, or close the connection because of it.
        isOfRequest: !session.destroyed || blamesRequests,
      },
    )
    this.#owner.onClosed(this)
  }

  /** Runs a step in an event listener, whose exceptions would otherwise be uncaught. */
  #guard(step: () => void): void {
    try {
      step()
    } catch (error) {
      if (error instanceof ResponseSyntaxError) this.#fail('protocol', error.message)
      else this.#fail('exception', 'exception while forwarding the response', { cause: error })
    }
  }

  #fail(kind: FailureKind, message: string, facts?: FailureFacts): void {
    const exchange = this.#exchange
    if (!exchange) return
    this.#exchange = undefined
    this.isWritable = false
    this.#deadline.clear()
    const resetAtMs = this.#beganMs + RESET_AFTER_MS
    if (kind === 'aborted' && !this.#answered && this.#now() < resetAtMs) this.#resetAtMs = resetAtMs
    else this.#reset(kind)
    if (this.cancelledBytes > 0) this.#owner.onCancelled()
    // A stream that is paused would not close.
    this.#stream?.resume()
    exchange.onFailure(new UpstreamFailure(kind, message, facts))
  }

  #reset(kind: FailureKind, code = NGHTTP2_CANCEL): void {
    this.#resetAtMs = Number.POSITIVE_INFINITY
    const stream = this.#stream
    if (!stream || stream.closed || stream.destroyed) return
    this.#owner.onReset(kind)
    stream.close(code)
  }
}

function readNext(stream: ClientHttp2Stream): Buffer | null {
  return stream.read() as Buffer | null
}
