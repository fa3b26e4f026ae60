import { GrowingBuffer } from '../http/message/growing-buffer.ts'

/** Maximum size of a body, far larger than any request of an operator. */
export const MAX_BODY_BYTES = 16 * 1024

/**
 * A JSON body that arrives in pieces. The pieces are copied into one buffer: if each is a single byte, separate buffers would take a
 * hundred bytes more per piece.
 */
export class JsonBody {
  readonly #bytes = new GrowingBuffer()

  /** @returns false if the body is too long */
  take(piece: Buffer): boolean {
    if (this.#bytes.length + piece.length > MAX_BODY_BYTES) return false
    this.#bytes.append(piece)
    return true
  }

  /** @throws if the body is not UTF-8 or not JSON */
  read(): unknown {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(this.#bytes.bytes))
  }
}
