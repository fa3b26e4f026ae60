import { token } from '../../http/message/token.ts'

/** A request that an operator asks about. Its text is sent as UTF-8. */
export type ExplainedRequest = {
  readonly method: string
  readonly target: string
  readonly host?: string | undefined
  /** The name and value of each line, in order. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body?: string | undefined
}

/** Characters that would end a request line or a header. */
const lineEnd = /[\r\n\0]/

/** Whether a text can be part of a request line or a header. */
export function fitsInLine(text: string): boolean {
  return !lineEnd.test(text)
}

/** Whether a text can be the name of a header (RFC 9110 section 5.1). */
export function isHeaderName(text: string): boolean {
  return token.test(text)
}

/**
 * Writes the HTTP/1.1 request line and headers, one character per byte. A missing `Host` is set as for an HTTP/1.0 request without one. A
 * missing `Content-Type` of a body is set to that of JSON or of a form, depending on how the body begins.
 *
 * @param defaultHost the backend's host
 */
export function writeHead(
  { method, target, host, headers, body }: ExplainedRequest,
  defaultHost: string,
): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}`)
  const has = (wanted: string): boolean => headers.some(([name]) => name.toLowerCase() === wanted)
  const hostLine = has('host') && host === undefined ? [] : [`Host: ${host ?? defaultHost}`]
  if (body !== undefined) {
    if (!has('content-type')) lines.push(`Content-Type: ${typeOf(body)}`)
    if (!has('content-length') && !has('transfer-encoding'))
      lines.push(`Content-Length: ${Buffer.byteLength(body)}`)
  }
  const head = [`${method} ${target} HTTP/1.1`, ...hostLine, ...lines].join('\r\n')
  return Buffer.from(`${head}\r\n\r\n`).toString('latin1')
}

function typeOf(body: string): string {
  return /^\s*[[{]/.test(body) ? 'application/json' : 'application/x-www-form-urlencoded'
}
