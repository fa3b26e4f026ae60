import type { Writable } from 'node:stream'
import { declaredLength } from '../../fields/framing.ts'
import type { ClientRequest } from '../../message/messages.ts'
import { detachBuffer } from '../../message/detach-buffer.ts'
import type { UpstreamChannel, UpstreamRequest } from '../../upstream/exchange.ts'
import type { HeldBody } from './held-body.ts'
import { KeptBytes } from './kept-bytes.ts'

/** Called when the body cannot be forwarded any further. */
export type BodyHooks = {
  /**
   * Whether the backend still reads the body. If not, the rest is read and dropped: the client's next request follows
   * it.
   */
  isWantedBy(connection: UpstreamChannel): boolean
  /** The body exceeds its limit. Nothing more is sent to the backend. */
  overLimit(): void
  /** The trailers to pass on, once the body has ended: name, value, name, value… */
  trailers(): readonly string[]
}

/**
 * Bytes that may wait for the backend's connection before the client's is paused: of a body that comes in one piece, the
 * first read brings nearly all, and pausing for the rest would cost more than passing it on.
 */
const MAX_UNSENT_BYTES = 128 * 1024

/**
 * Streams the body of a request to the backend, with back-pressure. The connection frames it anew: by its length if the client declared
 * one or the body is complete.
 */
export class RequestBody {
  readonly #request: ClientRequest
  readonly #maxBytes: number
  readonly #hooks: BodyHooks
  readonly #held: HeldBody | undefined
  /** Bytes that it has: as the client declared, or as it has come; undefined where it is not known. */
  readonly length: number | undefined
  #bytes = 0
  #reading = false
  /** Stops sending, if the body goes to an HTTP/2 stream. */
  #stop: (() => void) | undefined
  /** The sent bytes of a request that the backend may not have started; undefined once they are incomplete. */
  #kept: KeptBytes | undefined
  #hasEnded = false

  /**
   * @param maxBytes 0 means no limit
   * @param held what of it has been read before
   */
  constructor(request: ClientRequest, maxBytes: number, hooks: BodyHooks, held: HeldBody | undefined) {
    this.#request = request
    this.#maxBytes = maxBytes
    this.#hooks = hooks
    this.#held = held
    this.length = declaredLength(request) ?? held?.wholeBytes
  }

  /** Bytes that the client has sent so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** All of it has arrived, read or not. */
  get isHere(): boolean {
    return this.#request.complete
  }

  /** Whether it is waiting for the client to send more. */
  get isAwaited(): boolean {
    return this.#reading && !this.#request.isPaused()
  }

  /** It can be sent once more from its beginning, on another stream or connection. */
  get isRepeatable(): boolean {
    return this.#kept !== undefined
  }

  /** The backend has started the request: the kept copy of the body is not needed any more. */
  release(): void {
    this.#kept?.release()
    this.#kept = undefined
  }

  /** Its connection has failed, and it will be sent once more: until then nothing more is read. */
  hold(): void {
    this.#stop?.()
    this.#request.pause()
    this.#request.once('end', () => (this.#hasEnded = true))
  }

  /** Sends the request: its head, the bytes of the body that did not arrive the last time, and then the rest. */
  sendTo(connection: UpstreamChannel, head: UpstreamRequest): void {
    const stream = connection.open(head, () => this.release())
    const isAgain = this.#kept !== undefined
    this.#kept ??= new KeptBytes()
    for (const piece of this.#kept.pieces) connection.write(piece)
    const writeAndKeep = (chunk: Buffer): void => {
      // A pending piece keeps alive all the memory that it lies in: a whole read, of which it may be one byte.
      const piece = this.#kept || stream.writableLength > 0 ? detachBuffer(chunk) : chunk
      if (this.#kept?.add(piece) === false) this.#kept = undefined
      connection.write(piece)
    }
    const finish = this.#send(connection, stream, writeAndKeep, isAgain)
    // A held body that is whole has been finished already where it is sent for the first time.
    if (!isAgain) return
    if (this.#hasEnded) finish()
    else this.#request.resume()
  }

  /**
   * @param isAgain whether the held bytes have been sent before
   * @returns to be called where the body has ended already
   */
  #send(
    connection: UpstreamChannel,
    stream: Writable,
    write: (chunk: Buffer) => void,
    isAgain: boolean,
  ): () => void {
    const request = this.#request
    const hooks = this.#hooks
    const onDrain = (): void => {
      connection.requestStalled(false)
      request.resume()
    }
    let isStopped = false
    /**
     * No more of it can be sent: further bytes are dropped. Not where it is held to be sent once more: an emitter calls listeners that
     * one before them has removed.
     */
    const onError = (): void => {
      if (!isStopped) request.resume()
    }
    const stop = (): void => {
      isStopped = true
      this.#reading = false
      request.off('data', onData)
      request.off('end', onEnd)
      stream.off('drain', onDrain)
      stream.off('error', onError)
    }
    const hasStopped = (): boolean => !this.#reading
    /** For event listeners: what they throw would be an uncaught exception. */
    const guarded = (step: () => void): void => {
      try {
        step()
      } catch (error) {
        stop()
        connection.failFor(error)
      }
    }
    const onData = (chunk: Buffer): void => guarded(() => passOn(chunk))
    const onEnd = (): void => guarded(finish)
    const passOn = (chunk: Buffer): void => {
      if (!hooks.isWantedBy(connection)) {
        stop()
        request.resume()
      } else if (this.#isOverLimit(chunk.length)) {
        stop()
        hooks.overLimit()
      } else {
        write(chunk)
        if (!stream.writableNeedDrain || stream.writableLength <= MAX_UNSENT_BYTES) return
        connection.requestStalled(true)
        request.pause()
      }
    }
    const finish = (): void => {
      stop()
      if (!hooks.isWantedBy(connection)) return
      this.#hasEnded = true
      connection.endBody(hooks.trailers())
      connection.requestSent()
    }
    this.#stop = stop
    this.#reading = true
    request.on('data', onData)
    request.on('end', onEnd)
    stream.on('drain', onDrain)
    stream.on('error', onError)
    if (!this.#held || isAgain) return onEnd
    const { bytes, isWhole } = this.#held.take()
    if (bytes.length > 0) onData(bytes)
    // These bytes alone may exceed the limit.
    if (hasStopped()) request.resume()
    else if (isWhole) onEnd()
    else if (!stream.writableNeedDrain) request.resume()
    return onEnd
  }

  #isOverLimit(bytes: number): boolean {
    this.#bytes += bytes
    return this.#maxBytes > 0 && this.#bytes > this.#maxBytes
  }
}
