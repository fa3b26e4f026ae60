import { ByteQueue } from '../../message/byte-queue.ts'
import type { ClientResponse } from '../../message/messages.ts'

/** Limits for responses that are buffered for slow clients. */
export type ReadAhead = {
  /** Bytes of one response. */
  readonly perResponseBytes: number
  /** Bytes of all responses of this process together. */
  readonly totalBytes: number
  /** Bytes of all responses that are held now. */
  heldBytes: number
}

/** Where a response comes from, as far as a slow client holds it up. */
export type ResponseSource = {
  /** Stops reading until `resume`. */
  pause(): void
  resume(): void
}

/**
 * Buffers the body of a response whose client reads more slowly than the backend sends.
 *
 * Up to a limit the body is read ahead, so that a slow client does not keep the backend busy with a response of usual
 * size. Beyond that, reading from the backend pauses. Bytes buffered when the response ends or fails are still sent.
 */
export class ResponseBody {
  readonly #response: ClientResponse
  readonly #readAhead: ReadAhead
  #source: ResponseSource | undefined
  readonly #held = new ByteQueue()
  #paused = false
  #readsByClient = 0
  #after: (() => void) | undefined

  /** To be made when something arrives that `response` has no room for. */
  constructor(response: ClientResponse, readAhead: ReadAhead, source: ResponseSource | undefined) {
    this.#response = response
    this.#readAhead = readAhead
    this.#source = source
    response.onDrain = this.#onDrain
  }

  /** Bytes that have been read and not been written to the response. */
  get heldBytes(): number {
    return this.#held.bytes
  }

  /** How often the client has read some of its pending response. */
  get readsByClient(): number {
    return this.#readsByClient
  }

  push(chunk: Buffer): void {
    if (this.#held.isEmpty && !this.#response.writableNeedDrain) {
      if (!this.#response.write(chunk)) this.#pauseWhereFull()
      return
    }
    this.#held.push(chunk)
    this.#readAhead.heldBytes += chunk.length
    this.#pauseWhereFull()
  }

  /**
   * Nothing more comes, and the source serves others from now on.
   *
   * @param after called once all has been written to the response
   */
  finish(after: () => void): void {
    this.#source = undefined
    this.#after = after
    if (this.#held.isEmpty) this.#complete()
  }

  /** The client is gone. */
  drop(): void {
    this.#source = undefined
    this.#after = undefined
    this.#readAhead.heldBytes -= this.#held.bytes
    this.#held.clear()
    this.#response.onDrain = undefined
  }

  readonly #onDrain = (): void => {
    this.#readsByClient++
    for (let piece = this.#held.shift(); piece; piece = this.#held.shift()) {
      this.#readAhead.heldBytes -= piece.length
      if (!this.#response.write(piece)) break
    }
    if (this.#held.isEmpty && this.#after) this.#complete()
    else this.#resumeWhereEmpty()
  }

  #complete(): void {
    const after = this.#after
    this.drop()
    after?.()
  }

  #pauseWhereFull(): void {
    const { perResponseBytes, totalBytes, heldBytes } = this.#readAhead
    if (this.#paused || (this.#held.bytes < perResponseBytes && heldBytes < totalBytes)) return
    this.#paused = true
    this.#source?.pause()
  }

  #resumeWhereEmpty(): void {
    if (!this.#paused || this.#held.bytes > this.#readAhead.perResponseBytes / 2) return
    this.#paused = false
    this.#source?.resume()
  }
}
