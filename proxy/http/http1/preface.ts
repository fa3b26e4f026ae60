/** The connection preface, which an HTTP/2 client sends first (RFC 9113 section 3.4). */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** Checks whether the first bytes of a connection are the HTTP/2 preface. */
export class PrefaceWatch {
  #received: Buffer | undefined
  isPreface = false

  /** Bytes have been received, and the preface begins with them. */
  get hasBegun(): boolean {
    return this.#received !== undefined
  }

  /** Returns all bytes received so far once `isPreface` is known; undefined if it takes more bytes. */
  read(bytes: Buffer): Buffer | undefined {
    const seen = this.#received ? Buffer.concat([this.#received, bytes]) : bytes
    const length = Math.min(seen.length, preface.length)
    const isAlike = preface.compare(seen, 0, length, 0, length) === 0
    if (isAlike && length < preface.length) {
      this.#received = seen
      return undefined
    }
    this.isPreface = isAlike
    return seen
  }
}
