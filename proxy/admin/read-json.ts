import type { IncomingMessage } from 'node:http'
import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import { JsonBody, MAX_BODY_BYTES } from './json-body.ts'

/**
 * Reads the JSON body of a request. The request must declare the type `application/json`. A web page can send the types of the CORS
 * protocol's simple requests to other sites without a preflight, but not this type. So no page can make an operator's browser send a body
 * that is accepted here.
 *
 * @returns the value, or the error to answer with. After `bodyTooLarge`, the caller must close the connection
 */
export async function readJson(
  request: IncomingMessage,
): Promise<{ readonly value: unknown } | { readonly error: ErrorReply }> {
  const { 'content-type': type = '', 'content-length': length } = request.headers
  if (Number(length ?? 0) > MAX_BODY_BYTES) return { error: errors.bodyTooLarge }
  if (!/^application\/json[\t ]*(?:;|$)/i.test(type)) return { error: errors.notJson }
  const body = new JsonBody()
  try {
    // Do not destroy the request on return: a destroyed request can no longer be answered.
    for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>)
      if (!body.take(piece)) return { error: errors.bodyTooLarge }
    return { value: body.read() }
  } catch {
    return { error: errors.jsonUnreadable }
  }
}
