import { RequestSyntaxError } from './syntax-error.ts'

/** Limits for a head; the same limits apply to trailers separately. */
export type HeadLimits = {
  /** Bytes of all lines together, each with its CRLF. */
  readonly maxBytes: number
  readonly maxFields: number
}

/**
 * Counts the received bytes of a head or of trailers, including the received part of an incomplete line, so that a head that never ends
 * costs no more than the maximum. Each line counts with its CRLF, because every line costs something.
 */
export class HeadSize {
  readonly #limits: HeadLimits
  #bytes = 0
  #fields = 0

  constructor(limits: HeadLimits) {
    this.#limits = limits
  }

  clear(): void {
    this.#bytes = this.#fields = 0
  }

  /** @param bytes of the line without its CRLF @throws {RequestSyntaxError} */
  addLine(bytes: number): void {
    this.#bytes += bytes + LINE_END_BYTES
    if (this.#bytes > this.#limits.maxBytes) throw tooLarge()
  }

  /** @param bytes of the line without its CRLF @throws {RequestSyntaxError} */
  addField(bytes: number): void {
    this.addLine(bytes)
    if (++this.#fields > this.#limits.maxFields) throw new RequestSyntaxError('too many headers', 'head-size')
  }

  /** @param bytes received of an incomplete line @throws {RequestSyntaxError} */
  checkUnfinished(bytes: number): void {
    if (this.#bytes + bytes > this.#limits.maxBytes) throw tooLarge()
  }
}

const LINE_END_BYTES = 2

function tooLarge(): RequestSyntaxError {
  return new RequestSyntaxError('the head or the trailers are too large (MAX_HEADER_SIZE)', 'head-size')
}
