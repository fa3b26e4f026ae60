import { TLSSocket } from 'node:tls'
import { STATUS_CODES } from '../../../shared/node-http.ts'
import { acceptsTrailers } from '../fields/trailers.ts'
import { ClientResponse } from '../message/client-response.ts'
import { currentDate } from '../message/date.ts'
import { resetSocket } from '../message/reset-socket.ts'
import type { Output } from './output.ts'
import type { Http1Request } from './request.ts'

/** A request body of up to this size is read and dropped, so that the connection can be reused. */
const MAX_DRAINED_BYTES = 64 * 1024

/** A client with more pending output gets no interim responses until it reads. */
const MAX_PENDING_BYTES_BEFORE_INTERIM = 16 * 1024

/** The interface of a connection for its response. */
export type ResponseConnection = {
  readonly output: Output
  readonly keepAliveLine: string
  /** Sends `last` and `suffix`, the end of the response, and closes the response once they are sent. */
  finishResponse(last: Buffer | undefined, suffix: string): void
  /** Closes the connection after the written bytes, and reads on for a moment, so that they arrive. */
  closeSoon(): void
}

/** The response to an HTTP/1 request. */
export class Http1Response extends ClientResponse {
  declare readonly req: Http1Request
  shouldKeepAlive: boolean
  /** The client may send, or has sent, data that is not read: its connection is closed by `closeSoon`. */
  lingers = false
  readonly #connection: ResponseConnection
  #framing: ResponseFraming | undefined
  #trailers = ''
  #isTruncated = false

  constructor(request: Http1Request, connection: ResponseConnection, persistent: boolean) {
    super(request)
    this.#connection = connection
    this.shouldKeepAlive = persistent
  }

  get writableLength(): number {
    return this.#connection.output.pendingBytes
  }

  get writableNeedDrain(): boolean {
    return !this.destroyed && this.req.socket.writableNeedDrain
  }

  /** Whether the response ends only with the connection, as it has no other framing. */
  get isUndelimited(): boolean {
    return this.#framing === 'until-close'
  }

  writeHead(status: number, fields: readonly string[]): void {
    if (this.headersSent || this.destroyed) return
    const { method, httpVersion } = this.req
    const { text, framing, persistent } = finalHead(status, fields, {
      toHead: method === 'HEAD',
      acceptsChunked: httpVersion !== '1.0',
      persistent: this.shouldKeepAlive,
      keepAliveLine: this.#connection.keepAliveLine,
    })
    this.statusCode = status
    this.headersSent = true
    this.shouldKeepAlive = persistent
    this.#framing = framing
    this.#connection.output.buffer(text)
  }

  flushHead(): void {
    if (this.#isOpen) this.#connection.output.flushSoon()
  }

  write(piece: Buffer): boolean {
    if (!this.#isOpen || this.#framing === 'none' || piece.length === 0) return true
    const { output } = this.#connection
    if (this.#framing === 'chunked') {
      output.buffer(`${piece.length.toString(16)}\r\n`)
      output.writeBytes(piece, '\r\n')
    } else output.writeBytes(piece, '')
    return !this.req.socket.writableNeedDrain
  }

  end(last?: Buffer): void {
    if (!this.#isOpen) return
    this.writableEnded = true
    if (this.#framing === 'none') return this.#connection.finishResponse(undefined, '')
    const piece = last?.length ? last : undefined
    if (this.#framing !== 'chunked') return this.#connection.finishResponse(piece, '')
    if (piece) this.#connection.output.buffer(`${piece.length.toString(16)}\r\n`)
    this.#connection.finishResponse(piece, `${piece ? '\r\n' : ''}0\r\n${this.#trailers}\r\n`)
  }

  addTrailers(fields: readonly string[]): void {
    if (this.#framing === 'chunked' && acceptsTrailers(this.req)) this.#trailers += writeFields(fields)
  }

  writeContinue(): void {
    this.#sendInterim(100, [])
  }

  writeInterimResponse(status: number, fields: readonly string[]): void {
    if (
      this.req.httpVersion === '1.0' ||
      this.#connection.output.pendingBytes > MAX_PENDING_BYTES_BEFORE_INTERIM
    )
      return
    this.#sendInterim(status, fields)
  }

  #sendInterim(status: number, fields: readonly string[]): void {
    if (this.headersSent || this.destroyed) return
    this.#connection.output.write(writeInterimHead(status, fields))
  }

  closeIfBodyUnread(): void {
    if (this.req.complete || (this.shouldKeepAlive && this.#drainsCheaply())) return
    this.closeAfterResponse()
  }

  #drainsCheaply(): boolean {
    const { headers } = this.req
    if (headers['transfer-encoding'] !== undefined || headers.expect !== undefined) return false
    return Number(headers['content-length'] ?? 0) <= MAX_DRAINED_BYTES
  }

  closeAfterResponse(): void {
    this.shouldKeepAlive = false
    this.lingers = true
  }

  truncate(): void {
    if (this.destroyed) return
    if (this.isUndelimited) return this.abort()
    this.#isTruncated = true
    this.#connection.closeSoon()
  }

  abort(): void {
    const { socket } = this.req
    // Resets the connection, because an HTTP/1.0 client would take an orderly close for the end of a complete body. With TLS, the end of a
    // complete body is marked by an alert, which `destroy` does not send (RFC 9112 section 9.8).
    if (socket instanceof TLSSocket) socket.destroy()
    else resetSocket(socket)
  }

  destroyConnection(): void {
    this.abort()
  }

  /** Calls `onClose`: the connection has sent all of the response, or has closed. */
  markClosed(): void {
    this.close()
  }

  get #isOpen(): boolean {
    return this.headersSent && !this.writableEnded && !this.#isTruncated && !this.destroyed
  }
}

const statusLines: (string | undefined)[] = []

/** The status line with the standard reason phrase: the backend's is not passed on. */
function statusLine(status: number): string {
  return (statusLines[status] ??= `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'unknown'}\r\n`)
}

/** How the body of a response ends (RFC 9112 section 6.3). */
type ResponseFraming = 'none' | 'length' | 'chunked' | 'until-close'

/** Facts about a response, known before its head is written. */
type ResponseConditions = {
  /** Whether the request was a HEAD. */
  readonly toHead: boolean
  /** Its client understands chunks: HTTP/1.1 (RFC 9112 section 7.1). */
  readonly acceptsChunked: boolean
  /** Whether to keep the connection open after it, if possible. */
  readonly persistent: boolean
  /** The header lines that say how long an idle connection is kept. */
  readonly keepAliveLine: string
}

type FinalHead = {
  readonly text: string
  readonly framing: ResponseFraming
  readonly persistent: boolean
}

const closes = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i

/**
 * The head of a final response: the fields; `Date`, unless the fields have it; and headers that frame the body and say whether the
 * connection is kept, unless the fields do.
 *
 * @param fields name, value, name, value… with names in lower case
 */
function finalHead(
  status: number,
  fields: readonly string[],
  { toHead, acceptsChunked, persistent, keepAliveLine }: ResponseConditions,
): FinalHead {
  let text = statusLine(status)
  let hasDate = false
  let hasLength = false
  let connection: string | undefined
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const value = fields[i + 1] ?? ''
    text += `${name}: ${value}\r\n`
    if (name === 'content-length') hasLength = true
    else if (name === 'date') hasDate = true
    else if (name === 'connection') connection = value
  }
  if (!hasDate) text += `Date: ${currentDate()}\r\n`
  const framing = framingOf(status, toHead, hasLength, acceptsChunked)
  const isKept =
    connection === undefined
      ? persistent && framing !== 'until-close' && (hasLength || acceptsChunked)
      : persistent && !closes.test(connection)
  if (connection === undefined) text += isKept ? keepAliveLine : 'Connection: close\r\n'
  text += framing === 'chunked' ? 'Transfer-Encoding: chunked\r\n\r\n' : '\r\n'
  return { text, framing, persistent: isKept }
}

function framingOf(
  status: number,
  toHead: boolean,
  hasLength: boolean,
  acceptsChunked: boolean,
): ResponseFraming {
  if (toHead || status === 204 || status === 304) return 'none'
  if (hasLength) return 'length'
  return acceptsChunked ? 'chunked' : 'until-close'
}

/**
 * The head of a 101.
 *
 * @param protocol that the connection speaks from now on
 * @param fields name, value, name, value…
 */
export function writeSwitchingHead(protocol: string, fields: readonly string[]): string {
  return `${statusLine(101)}connection: upgrade\r\nupgrade: ${protocol}\r\n${writeFields(fields)}\r\n`
}

/** @param fields name, value, name, value… */
function writeInterimHead(status: number, fields: readonly string[]): string {
  return `${statusLine(status)}${writeFields(fields)}\r\n`
}

/** Writes header fields, each line with its CRLF. */
export function writeFields(fields: readonly string[]): string {
  let text = ''
  for (let i = 0; i < fields.length; i += 2) text += `${fields[i] ?? ''}: ${fields[i + 1] ?? ''}\r\n`
  return text
}
