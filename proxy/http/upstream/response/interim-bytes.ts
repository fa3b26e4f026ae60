import { ResponseSyntaxError } from './response-head.ts'

const MAX_BYTES = 1024 * 1024

/**
 * Counts the bytes of the interim responses before one final response. RFC 9110 section 15.2 does not limit their number: a backend that
 * works for hours may send one every few seconds (RFC 2518 section 10.1). The limit on their total size bounds the work that a broken
 * backend can cause: 1 MiB, as in Go's client.
 */
export class InterimBytes {
  #bytes = 0

  /** Whether no interim response has arrived. */
  get isZero(): boolean {
    return this.#bytes === 0
  }

  /** Starts over for the next final response. */
  clear(): void {
    this.#bytes = 0
  }

  /**
   * @param bytes of the head of an interim response
   * @throws {ResponseSyntaxError} if the total exceeds 1 MiB
   */
  add(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > MAX_BYTES) throw new ResponseSyntaxError('interim responses larger than 1 MiB')
  }
}
