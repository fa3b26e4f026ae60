import { errors, type ErrorReply } from '../../../shared/error-replies.ts'
import type { ClientRequest } from '../message/messages.ts'

/** An error in a request's framing: the reply to give, and the reason for the log. */
export type FaultyFraming = { readonly reply: ErrorReply; readonly why: string }

/**
 * Rejects a request whose body cannot be delimited safely: returns the reply to send, after which the connection has to
 * close; undefined for a request that can be forwarded. Adds to what the parser rejects by itself: repeated or
 * malformed lengths, a length with a coding, a coding after `chunked`.
 *
 * - Another version than HTTP/1.0 and HTTP/1.1 (RFC 9110 section 15.6.6)
 * - A transfer coding in HTTP/1.0, or one that does not end in `chunked` (RFC 9112 sections 6.1 and 6.3)
 * - Another coding under `chunked`, which would have to be undone before the content is framed anew (section 6.1)
 * - A length that no number here can hold
 */
export function refuseFraming(request: ClientRequest): FaultyFraming | undefined {
  // HTTP/2 frames content by itself.
  if (request.httpVersionMajor > 1) return undefined
  const { httpVersion, headers } = request
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return { reply: errors.versionNotSupported, why: 'the version is neither HTTP/1.0 nor HTTP/1.1' }
  const coding = headers['transfer-encoding']?.toLowerCase()
  if (coding === undefined) {
    const length = declaredLength(request)
    return length !== undefined && length > Number.MAX_SAFE_INTEGER
      ? { reply: errors.bodyTooLarge, why: 'the Content-Length is too large' }
      : undefined
  }
  if (httpVersion === '1.0')
    return { reply: errors.badRequest, why: 'Transfer-Encoding in an HTTP/1.0 request' }
  if (!endsInChunked.test(coding))
    return { reply: errors.badRequest, why: 'the Transfer-Encoding does not end in chunked' }
  return coding === 'chunked'
    ? undefined
    : { reply: errors.codingNotImplemented, why: 'unsupported Transfer-Encoding (only chunked is supported)' }
}

const endsInChunked = /(?:^|,[\t ]*)chunked$/

/** The bytes that `Content-Length` declares; undefined without one. */
export function declaredLength({ headers }: ClientRequest): number | undefined {
  const declared = headers['content-length']
  return declared === undefined ? undefined : Number(declared)
}

/** Something else than `100 Continue` is expected. To HTTP/1.0 the field means nothing (RFC 9110 section 10.1.1). */
export function expectsOther({ headers, httpVersion }: ClientRequest): boolean {
  return (
    headers.expect !== undefined && httpVersion !== '1.0' && headers.expect.toLowerCase() !== '100-continue'
  )
}

/**
 * The client waits for `100 Continue` before it sends the content. What else is expected has been refused; HTTP/1.0 knows
 * no interim responses (RFC 9110 section 10.1.1).
 */
export function expectsContinue(request: ClientRequest): boolean {
  return request.headers.expect !== undefined && request.httpVersion !== '1.0' && request.hasContent
}
