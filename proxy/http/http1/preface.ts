import { http2Preface } from '../message/http2-preface.ts'

/** Checks whether the first bytes of a connection are the HTTP/2 preface. */
export class PrefaceWatch {
  /** Bytes received, which are those of the preface. */
  #received = 0
  isPreface = false

  /** Bytes have been received, and the preface begins with them. */
  get hasBegun(): boolean {
    return this.#received > 0
  }

  /** Returns all bytes received so far once `isPreface` is known; undefined if more bytes are needed. */
  read(bytes: Buffer): Buffer | undefined {
    const before = this.#received
    const seen = before > 0 ? Buffer.concat([http2Preface.subarray(0, before), bytes]) : bytes
    const length = Math.min(seen.length, http2Preface.length)
    const isAlike = http2Preface.compare(seen, 0, length, 0, length) === 0
    if (isAlike && length < http2Preface.length) {
      this.#received = length
      return undefined
    }
    this.isPreface = isAlike
    return seen
  }
}
