import type { IncomingMessage } from 'node:http'
import { errors, type ErrorReply } from '../../shared/error-replies.ts'

/** A question of an operator's is far shorter. */
const LARGEST_BODY = 16 * 1024

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
  const chunks: Buffer[] = []
  let size = 0
  try {
    // Left as it is when this returns: destroyed, it could not be answered any more.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > LARGEST_BODY) return { error: errors.bodyTooLarge }
      chunks.push(chunk)
    }
    const text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
    return { value: JSON.parse(text) as unknown }
  } catch {
    return { error: errors.jsonUnreadable }
  }
}
