import { classifyResponseField, connectionOptions } from '../http/header-roles.ts'

/** What ends a response's body (RFC 9112 section 6.3). */
export type BodyFraming =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'until-close' }

/** A response's status and fields, checked, without hop-by-hop fields. The reason phrase is discarded. */
export type ResponseHead = {
  readonly status: number
  /** Name, value, name, value…; names in lower case. `content-length` is among them where the backend sent one. */
  readonly fields: string[]
  readonly framing: BodyFraming
  /** The backend lets the connection serve another request. */
  readonly persistent: boolean
  /** From `Keep-Alive: timeout=…`; undefined where the backend does not say. */
  readonly keepAliveMs: number | undefined
  /** The protocols that `Upgrade` names, for a 101 or a 426. */
  readonly upgrade: string | undefined
}

/** The backend's response violates RFC 9112. The message says how, and is for the log only. */
export class ResponseSyntaxError extends Error {
  override readonly name = 'ResponseSyntaxError'
}

const noBody: BodyFraming = { kind: 'none' }
const chunkedBody: BodyFraming = { kind: 'chunked' }
const bodyUntilClose: BodyFraming = { kind: 'until-close' }

const statusLine = /^HTTP\/1\.([01]) ([1-9][0-9][0-9])(?: [\t\x20-\x7e\x80-\xff]*)?$/
// A CR or LF is found here when it is not part of the CRLF that ended the line (RFC 9112 section 2.2).
const illegalInValue = /[^\t\x20-\x7e\x80-\xff]/
const lengthDigits = /^[0-9]{1,15}$/
const keepAliveTimeout = /(?:^|[,;\s])timeout=([0-9]{1,6})(?:$|[,;\s])/i

/**
 * Reads a response head as strictly as RFC 9112 allows: what is read leniently here could be read otherwise by the
 * client. Folded lines, bare CR or LF, a space before the colon, both framings, differing lengths and transfer codings
 * other than a single `chunked` are errors.
 *
 * @param text the head in Latin-1, from the status line up to, without, the empty line
 * @param requestMethod the method of the request that is answered: HEAD has no body whatever is declared
 * @throws {ResponseSyntaxError}
 */
export function parseResponseHead(text: string, requestMethod: string): ResponseHead {
  let lineEnd = text.indexOf('\r\n')
  const firstLine = lineEnd === -1 ? text : text.slice(0, lineEnd)
  const matched = statusLine.exec(firstLine)
  if (!matched) throw new ResponseSyntaxError('invalid status line')
  const status = Number(matched[2])
  const fields: string[] = []
  let contentLength: string | undefined
  let transferEncoding: string | undefined
  let connection: string | undefined
  let keepAlive: string | undefined
  let upgrade: string | undefined

  while (lineEnd !== -1) {
    const lineStart = lineEnd + 2
    lineEnd = text.indexOf('\r\n', lineStart)
    const end = lineEnd === -1 ? text.length : lineEnd
    const colon = text.indexOf(':', lineStart)
    if (colon === -1 || colon > end) throw new ResponseSyntaxError('header line without a colon')
    const field = classifyResponseField(text.slice(lineStart, colon))
    if (!field) throw new ResponseSyntaxError('invalid header name')
    const value = trimmedValue(text, colon + 1, end)
    switch (field.role) {
      case 'content-length':
        if (contentLength !== undefined && contentLength !== value)
          throw new ResponseSyntaxError('conflicting Content-Length headers')
        if (contentLength === undefined) fields.push(field.name, value)
        contentLength = value
        break
      case 'transfer-encoding':
        if (transferEncoding !== undefined) throw new ResponseSyntaxError('more than one Transfer-Encoding')
        transferEncoding = value
        break
      case 'connection':
        connection = connection === undefined ? value : `${connection},${value}`
        break
      case 'keep-alive':
        keepAlive = value
        break
      case 'upgrade':
        upgrade = upgrade === undefined ? value : `${upgrade}, ${value}`
        break
      case 'hop-by-hop':
        break
      default:
        fields.push(field.name, value)
    }
  }

  const options = connection === undefined ? undefined : connectionOptions(connection)
  return {
    status,
    fields: options ? withoutNamed(fields, options) : fields,
    framing: framingOf(status, requestMethod, matched[1] === '1', transferEncoding, contentLength),
    persistent: matched[1] === '1' ? !options?.has('close') : (options?.has('keep-alive') ?? false),
    keepAliveMs: keepAlive === undefined ? undefined : keepAliveMsOf(keepAlive),
    upgrade: options?.has('upgrade') ? upgrade : undefined,
  }
}

/**
 * Reads a trailer as a field of the head is read.
 *
 * @param line in Latin-1, without its line end
 * @throws {ResponseSyntaxError}
 */
export function parseTrailer(line: string): readonly [name: string, value: string] {
  const colon = line.indexOf(':')
  if (colon === -1) throw new ResponseSyntaxError('trailer line without a colon')
  const field = classifyResponseField(line.slice(0, colon))
  if (!field) throw new ResponseSyntaxError('invalid trailer name')
  if (illegalInValue.test(line.slice(colon + 1)))
    throw new ResponseSyntaxError('invalid character in a trailer value')
  return [field.name, trimmedValue(line, colon + 1, line.length)]
}

/** @throws {ResponseSyntaxError} for a character that no value may have */
export function checkFieldValue(value: string): void {
  if (illegalInValue.test(value)) throw new ResponseSyntaxError('invalid character in a header value')
}

function trimmedValue(text: string, start: number, end: number): string {
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  const value = text.slice(start, end)
  checkFieldValue(value)
  return value
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

function withoutNamed(fields: string[], named: ReadonlySet<string>): string[] {
  // The usual options name fields that are taken out whether or not they are named.
  if (named.size === 1 && (named.has('keep-alive') || named.has('close'))) return fields
  const kept: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? ''
    if (!named.has(name) || name === 'content-length') kept.push(name, fields[i + 1] ?? '')
  }
  return kept
}

function keepAliveMsOf(value: string): number | undefined {
  const seconds = keepAliveTimeout.exec(value)?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1000
}

function framingOf(
  status: number,
  requestMethod: string,
  isHttp11: boolean,
  transferEncoding: string | undefined,
  contentLength: string | undefined,
): BodyFraming {
  if (transferEncoding !== undefined) {
    if (!isHttp11) throw new ResponseSyntaxError('Transfer-Encoding in an HTTP/1.0 response')
    if (contentLength !== undefined)
      throw new ResponseSyntaxError('both Content-Length and Transfer-Encoding')
    if (transferEncoding.toLowerCase() !== 'chunked')
      throw new ResponseSyntaxError('unsupported Transfer-Encoding')
  }
  if (contentLength !== undefined && !lengthDigits.test(contentLength))
    throw new ResponseSyntaxError('invalid Content-Length')
  if (requestMethod === 'HEAD' || status < 200 || status === 204 || status === 304) return noBody
  if (transferEncoding !== undefined) return chunkedBody
  if (contentLength !== undefined) return { kind: 'length', bytes: Number(contentLength) }
  return bodyUntilClose
}
