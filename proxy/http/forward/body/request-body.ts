import type { Writable } from 'node:stream'
import { declaredLength } from '../../fields/framing.ts'
import type { ClientRequest } from '../../message/client-request.ts'
import { detachBuffer } from '../../message/detach-buffer.ts'
import type { UpstreamChannel, UpstreamRequest } from '../../upstream/exchange.ts'
import { BodyTransfer, type TransferredBody } from './body-transfer.ts'
import type { HeldBody } from './held-body.ts'
import { RetryBuffer } from './retry-buffer.ts'

/** Callbacks of a request body. */
export type BodyHooks = {
  /** Whether the backend still reads the body. If not, the rest is read and dropped, because the client's next request follows it. */
  isWantedBy(connection: UpstreamChannel): boolean
  /** Called when the body exceeds its limit. No more of it is sent to the backend. */
  overLimit(): void
}

/**
 * Streams the body of a request to the backend, with back-pressure. The connection frames it anew: by its length if the client declared
 * one or the body is complete.
 */
export class RequestBody implements TransferredBody {
  readonly #request: ClientRequest
  readonly #maxBytes: number
  readonly #hooks: BodyHooks
  readonly #held: HeldBody | undefined
  readonly #client: string
  /** The length of the body: declared by the client, or known from a held body that is whole; undefined if unknown. */
  readonly length: number | undefined
  #bytes = 0
  /** The latest attempt to send the body. */
  #transfer: BodyTransfer | undefined
  /** The sent part of the body; undefined before the request is sent, and once it cannot be sent again. */
  #retryBuffer: RetryBuffer | undefined
  #hasEnded = false

  /**
   * @param maxBytes 0 means no limit
   * @param held the part of the body that was read before the request was decided
   * @param client whose share of the memory for retries is used
   */
  constructor(
    request: ClientRequest,
    maxBytes: number,
    hooks: BodyHooks,
    held: HeldBody | undefined,
    client: string,
  ) {
    this.#request = request
    this.#maxBytes = maxBytes
    this.#hooks = hooks
    this.#held = held
    this.#client = client
    this.length = declaredLength(request) ?? held?.wholeBytes
  }

  /** Bytes that the client has sent so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether all of the body has arrived, read or not. */
  get isHere(): boolean {
    return this.#request.complete
  }

  /** Whether the transfer is waiting for the client to send more. */
  get isAwaited(): boolean {
    return this.#transfer?.isStopped === false && !this.#request.isPaused()
  }

  /** Whether the body can be sent again from its beginning, on another stream or connection. */
  get isRetryable(): boolean {
    return this.#retryBuffer !== undefined
  }

  /** Call when the backend may have begun with the request, so that it must not be sent again. Frees the retry buffer. */
  release(): void {
    this.#retryBuffer?.release()
    this.#retryBuffer = undefined
  }

  /** Call when the connection has failed and the request will be sent again. Until then, no more of the body is read. */
  pauseForRetry(): void {
    this.#transfer?.stop()
    this.#request.pause()
    this.#request.once('end', () => (this.#hasEnded = true))
  }

  /** Sends the request: its head, the bytes in the retry buffer, and then the rest of the body as it arrives. */
  sendTo(connection: UpstreamChannel, head: UpstreamRequest): void {
    const stream = connection.writeHead(head, () => this.release())
    const isRetry = this.#retryBuffer !== undefined
    this.#retryBuffer ??= new RetryBuffer(this.#client)
    for (const piece of this.#retryBuffer.pieces) connection.write(piece)
    const transfer = new BodyTransfer(this, this.#request, connection, stream)
    this.#transfer = transfer
    // On the first attempt, `sendHeld` also ends a held body that is whole.
    if (!isRetry) {
      if (this.#held) transfer.sendHeld(this.#held)
    } else if (this.#hasEnded) transfer.end()
    else this.#request.resume()
  }

  isWantedBy(connection: UpstreamChannel): boolean {
    return this.#hooks.isWantedBy(connection)
  }

  count(bytes: number): boolean {
    this.#bytes += bytes
    return this.#maxBytes === 0 || this.#bytes <= this.#maxBytes
  }

  overLimit(): void {
    this.#hooks.overLimit()
  }

  write(chunk: Buffer, connection: UpstreamChannel, stream: Writable): void {
    // A pending piece keeps the whole buffer of its read in memory, even if the piece is a single byte.
    const piece = this.#retryBuffer || stream.writableLength > 0 ? detachBuffer(chunk) : chunk
    if (this.#retryBuffer?.add(piece) === false) this.#retryBuffer = undefined
    connection.write(piece)
  }

  end(connection: UpstreamChannel): void {
    this.#hasEnded = true
    connection.endBody()
  }
}
