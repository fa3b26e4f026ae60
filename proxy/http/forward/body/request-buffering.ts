import { declaredLength } from '../../fields/framing.ts'
import type { ClientRequest } from '../../message/client-request.ts'

/**
 * How long to wait for a body before its request is sent to the backend: until it is `whole`, or only for the bytes that arrive in the
 * same `turn` of the event loop, if the response may begin before the body ends.
 */
export type BodyWait = 'whole' | 'turn'

/** Calls that can stream in both directions. */
const streamingType = /^\s*application\/(?:grpc|connect)/i
/** Forms are buffered, because a backend cannot use a form before its end. */
const formType = /^\s*(?:application\/x-www-form-urlencoded|multipart\/form-data)/i

/**
 * Returns how the body of a request is buffered before a connection to the backend is used. Without buffering, clients that send slowly
 * would occupy a backend that gives a worker to each connection, such as gunicorn.
 *
 * @param maxBytes longer bodies are streamed; with 0, all bodies are
 * @returns undefined if the request is sent to the backend at once
 */
export function bodyWaitOf(request: ClientRequest, maxBytes: number): BodyWait | undefined {
  if (maxBytes === 0 || !request.hasContent) return undefined
  const type = request.headers['content-type'] ?? ''
  if (streamingType.test(type)) return undefined
  const length = declaredLength(request)
  if (length !== undefined) return length <= maxBytes ? 'whole' : undefined
  return formType.test(type) ? 'whole' : 'turn'
}
