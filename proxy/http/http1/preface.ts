import { http2Preface } from '../message/http2-preface.ts'

/** Checks whether the first bytes of a connection are the HTTP/2 preface. */
export class PrefaceWatch {
  #received: Buffer | undefined
  isPreface = false

  /** Bytes have been received, and the preface begins with them. */
  get hasBegun(): boolean {
    return this.#received !== undefined
  }

  /** Returns all bytes received so far once `isPreface` is known; undefined if more bytes are needed. */
  read(bytes: Buffer): Buffer | undefined {
    const seen = this.#received ? Buffer.concat([this.#received, bytes]) : bytes
    const length = Math.min(seen.length, http2Preface.length)
    const isAlike = http2Preface.compare(seen, 0, length, 0, length) === 0
    if (isAlike && length < http2Preface.length) {
      this.#received = seen
      return undefined
    }
    this.isPreface = isAlike
    return seen
  }
}
