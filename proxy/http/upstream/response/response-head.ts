import { logsInConnection } from '../../fields/connection-login.ts'
import { readFieldName } from '../../fields/field-names.ts'
import { illegalInValue } from '../../message/token.ts'
import { classifyResponseField, connectionOptions, type FieldClass } from '../../fields/header-roles.ts'
import { trimBlanks } from '../../fields/trim-blanks.ts'
import { ownCopy } from '../../message/detach-buffer.ts'

/** How a response's body ends (RFC 9112 section 6.3). */
export type BodyFraming =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'until-close' }

/** A response's status and fields, checked, without hop-by-hop fields. The reason phrase is discarded. */
export type ResponseHead = {
  readonly status: number
  /** Name, value, name, value…; names in lower case. `content-length` is among them if the backend sent one. */
  readonly fields: string[]
  readonly framing: BodyFraming
  /** Whether the connection may serve another request: the backend allows it, and has not logged a user in on the connection. */
  readonly persistent: boolean
  /** From `Keep-Alive: timeout=…`; undefined if the backend does not say. */
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
/** A `Content-Length` that a number holds exactly. */
export const lengthDigits = /^[0-9]{1,15}$/
const keepAliveTimeout = /(?:^|[,;\s])timeout=([0-9]{1,6})(?:$|[,;\s])/i

/** A line with its CRLF, and the field in it. */
type FieldLine = { readonly text: string; readonly field: FieldClass; readonly value: string }
type StatusLine = { readonly text: string; readonly status: number; readonly isHttp11: boolean }

/** Lines of longer heads are not cached: each cached line is a slice that keeps its whole head in memory. */
const MAX_REMEMBERED_HEAD_LENGTH = 4 * 1024
const MAX_REMEMBERED_LINES = 32

/**
 * Reads the response heads of one connection as strictly as RFC 9112 allows. If a head were read leniently here, the client could read it
 * differently. Folded lines, bare CR or LF, a space before the colon, both framings, differing lengths and transfer codings other than a
 * single `chunked` are errors.
 *
 * Most lines of a head are the same as in the previous head on the connection, so their parsed form is cached.
 */
export class ResponseHeadReader {
  #statusLine: StatusLine | undefined
  readonly #lines: FieldLine[] = []

  /**
   * @param text the head in Latin-1, each line with its CRLF, without the empty line
   * @param requestMethod the method of the answered request: a response to HEAD has no body, whatever it declares
   * @throws {ResponseSyntaxError}
   */
  read(text: string, requestMethod: string): ResponseHead {
    const { status, isHttp11, text: statusLine } = this.#readStatusLine(text)
    const fields: string[] = []
    let contentLength: string | undefined
    let transferEncoding: string | undefined
    let connection: string | undefined
    let keepAlive: string | undefined
    let upgrade: string | undefined
    let logsIn = false

    let start = statusLine.length
    for (let index = 0; start < text.length; index++) {
      const { text: line, field, value } = this.#readLine(text, start, index)
      start += line.length
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
        case 'connection-login':
          fields.push(field.name, value)
          logsIn ||=
            field.name === 'persistent-auth' ? value.toLowerCase() !== 'false' : logsInConnection(value)
          break
        default:
          fields.push(field.name, value)
      }
    }

    const options = connection === undefined ? undefined : connectionOptions(connection)
    return {
      status,
      fields: options ? withoutNamed(fields, options) : fields,
      framing: framingOf(status, requestMethod, isHttp11, transferEncoding, contentLength),
      persistent: !logsIn && (isHttp11 ? !options?.has('close') : (options?.has('keep-alive') ?? false)),
      keepAliveMs: keepAlive === undefined ? undefined : keepAliveMsOf(keepAlive),
      upgrade: options?.has('upgrade') ? upgrade : undefined,
    }
  }

  #readStatusLine(text: string): StatusLine {
    const known = this.#statusLine
    if (known && text.slice(0, known.text.length) === known.text) return known
    return (this.#statusLine = parseStatusLine(text))
  }

  #readLine(text: string, start: number, index: number): FieldLine {
    const known = this.#lines[index]
    if (known && text.slice(start, start + known.text.length) === known.text) return known
    const line = parseLine(text, start)
    if (index < MAX_REMEMBERED_LINES && text.length <= MAX_REMEMBERED_HEAD_LENGTH) this.#lines[index] = line
    return line
  }
}

/** The offset after the line that begins at `start`, with its CRLF. @throws {ResponseSyntaxError} if there is no CRLF */
function endOfLine(text: string, start: number): number {
  const end = text.indexOf('\r\n', start)
  if (end === -1) throw new ResponseSyntaxError('header line without a line end')
  return end + 2
}

function parseStatusLine(text: string): StatusLine {
  const line = text.slice(0, endOfLine(text, 0))
  const matched = statusLine.exec(line.slice(0, -2))
  if (!matched) throw new ResponseSyntaxError('invalid status line')
  return { text: ownCopy(line), status: Number(matched[2]), isHttp11: matched[1] === '1' }
}

function parseLine(text: string, start: number): FieldLine {
  const end = endOfLine(text, start)
  const colon = text.indexOf(':', start)
  if (colon === -1 || colon >= end) throw new ResponseSyntaxError('header line without a colon')
  const field = classOf(text.slice(start, colon))
  if (!field) throw new ResponseSyntaxError('invalid header name')
  return { text: text.slice(start, end), field, value: trimmedValue(text, colon + 1, end - 2) }
}

function classOf(spelling: string): FieldClass | undefined {
  const named = readFieldName(spelling)
  return named && classifyResponseField(named.name)
}

/**
 * Reads a trailer like a field of the head.
 *
 * @param line in Latin-1, without its line end
 * @throws {ResponseSyntaxError}
 */
export function parseTrailer(line: string): readonly [name: string, value: string] {
  const colon = line.indexOf(':')
  if (colon === -1) throw new ResponseSyntaxError('trailer line without a colon')
  const field = classOf(line.slice(0, colon))
  if (!field) throw new ResponseSyntaxError('invalid trailer name')
  if (illegalInValue.test(line.slice(colon + 1)))
    throw new ResponseSyntaxError('invalid character in a trailer value')
  return [field.name, trimmedValue(line, colon + 1, line.length)]
}

/** @throws {ResponseSyntaxError} for a character that no value may have, such as a CR or LF within the line (RFC 9112 section 2.2) */
export function checkFieldValue(value: string): void {
  if (illegalInValue.test(value)) throw new ResponseSyntaxError('invalid character in a header value')
}

function trimmedValue(text: string, start: number, end: number): string {
  const value = trimBlanks(text, start, end)
  checkFieldValue(value)
  return value
}

function withoutNamed(fields: string[], named: ReadonlySet<string>): string[] {
  // These options name fields that are removed in any case.
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
