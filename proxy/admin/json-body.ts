import { GrowingBuffer } from '../http/message/growing-buffer.ts'

/** Far longer than any request of an operator. */
export const MAX_BODY_BYTES = 16 * 1024

/** A body of JSON that arrives in pieces. They are copied: of single bytes, each would take a hundred in addition. */
export class JsonBody {
  readonly #bytes = new GrowingBuffer()

  /** @returns whether it is not too long yet */
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
