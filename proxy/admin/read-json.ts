import type { IncomingMessage } from 'node:http'
import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import { JsonBody, MAX_BODY_BYTES } from './json-body.ts'

/**
 * Reads a request's JSON. It must be declared as such: a web page can send other types across sites without asking
 * (the CORS protocol's simple requests), this one not, so no page can make an operator's browser send a body that is accepted here.
 *
 * @returns the value, or the error to answer with. After `bodyTooLarge` the caller must close the connection
 */
export async function readJson(
  request: IncomingMessage,
): Promise<{ readonly value: unknown } | { readonly error: ErrorReply }> {
  const { 'content-type': type = '', 'content-length': length } = request.headers
  if (Number(length ?? 0) > MAX_BODY_BYTES) return { error: errors.bodyTooLarge }
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
