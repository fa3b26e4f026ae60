import type { ClientRequest } from '../message/client-request.ts'

/** The bytes that `Content-Length` declares; undefined without one. */
export function declaredLength({ headers }: ClientRequest): number | undefined {
  const declared = headers['content-length']
  return declared === undefined ? undefined : Number(declared)
}

/**
 * Whether the client waits for `100 Continue` before it sends the content. Any other expectation has been rejected (417); HTTP/1.0 has no
 * interim responses (RFC 9110 section 10.1.1).
 */
export function expectsContinue(request: ClientRequest): boolean {
  return request.headers.expect !== undefined && request.httpVersion !== '1.0' && request.hasContent
}
