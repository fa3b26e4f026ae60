import { ByteQueue } from '../../message/byte-queue.ts'
import type { ClientResponse } from '../../message/client-response.ts'

/** Limits for responses that are buffered for slow clients. */
export type ReadAhead = {
  /** The maximum bytes that are read ahead of one response. */
  readonly perResponseBytes: number
  /** The maximum bytes of all responses of this process together. */
  readonly totalBytes: number
  /** Bytes of all responses that are buffered now. */
  bufferedBytes: number
}

/** The connection that the body of a response is read from. */
export type ResponseSource = {
  /** Stops reading until `resume`. */
  pause(): void
  resume(): void
  /** Bytes that the source may still receive after `pause`, and keep until `resume`; memory is reserved for them. */
  readonly maxWaitingBytes: number
  /** Bytes that the source has received and keeps until `resume`. */
  readonly waitingBytes: number
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
  readonly #buffered = new ByteQueue()
  #paused = false
  #readsByClient = 0
  #after: (() => void) | undefined

  /** Created when a piece arrives while `response` has no room. */
  constructor(response: ClientResponse, readAhead: ReadAhead, source: ResponseSource | undefined) {
    this.#response = response
    this.#readAhead = readAhead
    this.#source = source
    response.onDrain = this.#onDrain
  }

  /** Bytes that have been received but not written to the response yet. */
  get bufferedBytes(): number {
    return this.#buffered.bytes + (this.#source?.waitingBytes ?? 0)
  }

  /** How often the client has read some of its pending response. */
  get readsByClient(): number {
    return this.#readsByClient
  }

  push(chunk: Buffer): void {
    if (this.#buffered.isEmpty && !this.#response.writableNeedDrain) {
      if (!this.#response.write(chunk)) this.#pauseIfFull()
      return
    }
    this.#buffered.push(chunk)
    this.#readAhead.bufferedBytes += chunk.length
    this.#pauseIfFull()
  }

  /**
   * Ends the body: no more of it will come, and the source serves other exchanges from now on.
   *
   * @param after called once everything buffered has been written to the response
   */
  finish(after: () => void): void {
    this.#source = undefined
    this.#after = after
    if (this.#buffered.isEmpty) this.#complete()
  }

  /** The client has gone: discards the buffered bytes. */
  drop(): void {
    this.#source = undefined
    this.#after = undefined
    this.#readAhead.bufferedBytes -= this.#buffered.bytes
    this.#buffered.clear()
    this.#response.onDrain = undefined
  }

  readonly #onDrain = (): void => {
    this.#readsByClient++
    for (let piece = this.#buffered.shift(); piece; piece = this.#buffered.shift()) {
      this.#readAhead.bufferedBytes -= piece.length
      if (!this.#response.write(piece)) break
    }
    if (this.#buffered.isEmpty && this.#after) this.#complete()
    else this.#resumeIfDrained()
  }

  #complete(): void {
    const after = this.#after
    this.drop()
    after?.()
  }

  #pauseIfFull(): void {
    const { perResponseBytes, totalBytes, bufferedBytes } = this.#readAhead
    if (this.#paused) return
    const heldBytes = this.#buffered.bytes + (this.#source?.maxWaitingBytes ?? 0)
    if (heldBytes < perResponseBytes && bufferedBytes < totalBytes) return
    this.#paused = true
    this.#source?.pause()
  }

  #resumeIfDrained(): void {
    if (!this.#paused || this.#buffered.bytes > this.#readAhead.perResponseBytes / 2) return
    this.#paused = false
    this.#source?.resume()
  }
}
