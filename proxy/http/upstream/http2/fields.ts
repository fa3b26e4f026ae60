import { classifyResponseField } from '../../fields/header-roles.ts'
import type { UpstreamRequest } from '../exchange.ts'
import {
  checkFieldValue,
  lengthDigits,
  ResponseSyntaxError,
  type BodyFraming,
  type ResponseHead,
} from '../response/response-head.ts'

/** Bytes that HTTP/2 adds for each field when it measures a header list (RFC 9113 section 6.5.2). */
const OVERHEAD_BYTES = 32

/** The failure of a request whose head is larger than the backend accepts. */
export const headTooLarge =
  'the request head is larger than the backend accepts (SETTINGS_MAX_HEADER_LIST_SIZE)'

/** The fields of an HTTP/2 request: name, value, name, value… `host` becomes `:authority`. */
export function requestFields(
  { method, target, fields, contentLength, acceptsTrailers }: UpstreamRequest,
  scheme: string,
): string[] {
  const { names, values } = fields
  const written = [':method', method, ':scheme', scheme, ':authority', values[0] ?? '', ':path', target]
  for (let i = 1; i < names.length; i++) written.push(names[i]?.name ?? '', values[i] ?? '')
  if (contentLength !== undefined) written.push('content-length', String(contentLength))
  if (acceptsTrailers) written.push('te', 'trailers')
  return written
}

/** The size of a list of fields as RFC 9113 section 6.5.2 counts it. */
export function listBytes(raw: readonly string[]): number {
  let bytes = raw.length * (OVERHEAD_BYTES / 2)
  for (const text of raw) bytes += text.length
  return bytes
}

/**
 * Reads the head of a response as strictly as an HTTP/1.1 head.
 *
 * @param raw name, value, name, value… as received, pseudo-fields among them
 * @param isWhole the response ends with its head
 * @throws {ResponseSyntaxError}
 */
export function readResponseHead(raw: readonly string[], isWhole = false): ResponseHead {
  let status = 0
  let contentLength: string | undefined
  const fields: string[] = []
  for (let i = 0; i < raw.length; i += 2) {
    const [name = '', value = ''] = [raw[i], raw[i + 1]]
    if (name === ':status') {
      status = Number(value)
      continue
    }
    const role = classifyResponseField(name)?.role
    if (role === undefined) throw new ResponseSyntaxError('invalid header name')
    checkFieldValue(value)
    if (role === 'content-length') {
      if (contentLength !== undefined) throw new ResponseSyntaxError('conflicting Content-Length headers')
      if (!lengthDigits.test(value)) throw new ResponseSyntaxError('invalid Content-Length')
      contentLength = value
    }
    // Connection-specific headers have no meaning here (RFC 9113 section 8.2.2).
    if (role === 'end-to-end' || role === 'content-length' || role === 'connection-login')
      fields.push(name, value)
  }
  if (!(status >= 100 && status <= 999)) throw new ResponseSyntaxError('invalid status')
  return {
    status,
    fields,
    framing: framingOf(contentLength, isWhole),
    persistent: true,
    keepAliveMs: undefined,
    upgrade: undefined,
  }
}

function framingOf(contentLength: string | undefined, isWhole: boolean): BodyFraming {
  // If the head declares a length, the body may be missing.
  if (isWhole && Number(contentLength ?? 0) === 0) return { kind: 'none' }
  return contentLength === undefined
    ? { kind: 'until-close' }
    : { kind: 'length', bytes: Number(contentLength) }
}
