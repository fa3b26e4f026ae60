import type { Writable } from 'node:stream'
import { declaredLength } from '../../fields/framing.ts'
import type { ClientRequest } from '../../message/messages.ts'
import { detachBuffer } from '../../message/detach-buffer.ts'
import type { UpstreamChannel, UpstreamRequest } from '../../upstream/exchange.ts'
import { BodyTransfer, type TransferredBody } from './body-transfer.ts'
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
 * Streams the body of a request to the backend, with back-pressure. The connection frames it anew: by its length if the client declared
 * one or the body is complete.
 */
export class RequestBody implements TransferredBody {
  readonly #request: ClientRequest
  readonly #maxBytes: number
  readonly #hooks: BodyHooks
  readonly #held: HeldBody | undefined
  /** Bytes that it has: as the client declared, or as it has come; undefined where it is not known. */
  readonly length: number | undefined
  #bytes = 0
  /** Its sending, the last one where there were several. */
  #transfer: BodyTransfer | undefined
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
    return this.#transfer?.isStopped === false && !this.#request.isPaused()
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
    this.#transfer?.stop()
    this.#request.pause()
    this.#request.once('end', () => (this.#hasEnded = true))
  }

  /** Sends the request: its head, the bytes of the body that did not arrive the last time, and then the rest. */
  sendTo(connection: UpstreamChannel, head: UpstreamRequest): void {
    const stream = connection.open(head, () => this.release())
    const isAgain = this.#kept !== undefined
    this.#kept ??= new KeptBytes()
    for (const piece of this.#kept.pieces) connection.write(piece)
    const transfer = new BodyTransfer(this, this.#request, connection, stream)
    this.#transfer = transfer
    // A held body that is whole has been finished already where it is sent for the first time.
    if (!isAgain) {
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
    // A pending piece keeps alive all the memory that it lies in: a whole read, of which it may be one byte.
    const piece = this.#kept || stream.writableLength > 0 ? detachBuffer(chunk) : chunk
    if (this.#kept?.add(piece) === false) this.#kept = undefined
    connection.write(piece)
  }

  end(connection: UpstreamChannel): void {
    this.#hasEnded = true
    connection.endBody(this.#hooks.trailers())
    connection.requestSent()
  }
}
