import type { Writable } from 'node:stream'
import type { ClientRequest } from '../../message/client-request.ts'
import type { UpstreamChannel } from '../../upstream/exchange.ts'
import type { HeldBody } from './held-body.ts'

/** The body that a transfer sends. */
export type TransferredBody = {
  /** Whether the backend still reads the body from this connection. */
  isWantedBy(connection: UpstreamChannel): boolean
  /** Counts received bytes. Returns whether the body is within its limit. */
  count(bytes: number): boolean
  /** Called when the body exceeds its limit. No more of it is sent. */
  overLimit(): void
  /** Writes a piece to the connection, and buffers it if the request may be sent again. */
  write(piece: Buffer, connection: UpstreamChannel, stream: Writable): void
  /** Ends the body on the connection, after all of it has been written. */
  end(connection: UpstreamChannel): void
}

/**
 * Bytes that may wait for the backend's connection before the client's connection is paused. If a client sends its body at once, the first
 * read brings nearly all of it, and pausing for the rest would cost more than passing it on.
 */
const MAX_UNSENT_BYTES = 128 * 1024

/**
 * Sends a request's body to one connection, with back-pressure, until the body ends or the transfer is stopped. A retry needs a new
 * transfer.
 */
export class BodyTransfer {
  readonly #body: TransferredBody
  readonly #request: ClientRequest
  readonly #connection: UpstreamChannel
  readonly #stream: Writable
  #isStopped = false

  /** @param stream the stream that the connection writes to */
  constructor(body: TransferredBody, request: ClientRequest, connection: UpstreamChannel, stream: Writable) {
    this.#body = body
    this.#request = request
    this.#connection = connection
    this.#stream = stream
    request.on('data', this.#onData)
    request.on('end', this.end)
    stream.on('drain', this.#onDrain)
    stream.on('error', this.#onError)
  }

  /** Whether the transfer has stopped reading the body. */
  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Sends the bytes that were read before, and then lets the client send the rest. */
  sendHeld(held: HeldBody): void {
    const { bytes, isWhole } = held.take()
    if (bytes.length > 0) this.#onData(bytes)
    // These bytes alone may exceed the limit.
    if (this.#isStopped) this.#request.resume()
    else if (isWhole) this.end()
    else if (!this.#stream.writableNeedDrain) this.#request.resume()
  }

  /** Handles the end of the body. */
  readonly end = (): void => {
    try {
      this.stop()
      if (this.#body.isWantedBy(this.#connection)) this.#body.end(this.#connection)
    } catch (error) {
      this.#fail(error)
    }
  }

  stop(): void {
    this.#isStopped = true
    this.#request.off('data', this.#onData)
    this.#request.off('end', this.end)
    this.#stream.off('drain', this.#onDrain)
    this.#stream.off('error', this.#onError)
  }

  readonly #onData = (chunk: Buffer): void => {
    try {
      this.#passOn(chunk)
    } catch (error) {
      this.#fail(error)
    }
  }

  #passOn(chunk: Buffer): void {
    const stream = this.#stream
    if (!this.#body.isWantedBy(this.#connection)) {
      this.stop()
      this.#request.resume()
    } else if (!this.#body.count(chunk.length)) {
      this.stop()
      this.#body.overLimit()
    } else {
      this.#body.write(chunk, this.#connection, stream)
      if (!stream.writableNeedDrain || stream.writableLength <= MAX_UNSENT_BYTES) return
      this.#connection.bodyStalled()
      this.#request.pause()
    }
  }

  readonly #onDrain = (): void => {
    this.#connection.bodyDrained()
    this.#request.resume()
  }

  /**
   * Drops further bytes once no more of the body can be sent, unless a retry has stopped this transfer: an emitter still calls listeners
   * that were removed while it emits.
   */
  readonly #onError = (): void => {
    if (!this.#isStopped) this.#request.resume()
  }

  /** Fails the exchange with an exception of an event listener, which would otherwise be uncaught. */
  #fail(error: unknown): void {
    this.stop()
    this.#connection.failFor(error)
  }
}
