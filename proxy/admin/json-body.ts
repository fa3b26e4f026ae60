import type { IncomingMessage } from 'node:http'
import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import { WaitingBytes } from '../message/waiting-bytes.ts'

/** A question of an operator's is far shorter. */
export const LARGEST_BODY = 16 * 1024

/** A body of JSON that arrives in pieces. They are copied: of single bytes, each would take a hundred beside its own. */
export class JsonBody {
  readonly #bytes = new WaitingBytes()

  /** @returns whether it is not too long yet */
  take(piece: Buffer): boolean {
    if (this.#bytes.length + piece.length > LARGEST_BODY) return false
    this.#bytes.append(piece)
    return true
  }

  /** @throws for what is no UTF-8, and no JSON */
  read(): unknown {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(this.#bytes.bytes))
  }
}

/**
 * Reads a request's JSON. It must be declared as such: a web page can send other types across sites without asking
 * (the CORS protocol's simple requests), this one not, so no page can make an operator's browser send what is read here.
 *
 * @returns the value, or the error to answer with. After `bodyTooLarge` the connection is to be closed
 */
export async function readJson(
  request: IncomingMessage,
): Promise<{ readonly value: unknown } | { readonly error: ErrorReply }> {
  const { 'content-type': type = '', 'content-length': length } = request.headers
  if (Number(length ?? 0) > LARGEST_BODY) return { error: errors.bodyTooLarge }
  if (!/^application\/json[\t ]*(?:;|$)/i.test(type)) return { error: errors.notJson }
  const body = new JsonBody()
  try {
    // Left as it is when this returns: destroyed, it could not be answered any more.
    for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>)
      if (!body.take(piece)) return { error: errors.bodyTooLarge }
    return { value: body.read() }
  } catch {
    return { error: errors.jsonUnreadable }
  }
}
