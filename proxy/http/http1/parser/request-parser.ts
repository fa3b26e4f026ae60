import { BodyReader, type BodySink } from './body-reader.ts'
import type { HeadLimits } from './head-size.ts'
import { checkLines, LineReader } from './line-reader.ts'
import { beginsLikeRequest, HeadReader, type ParsedHead } from './request-head.ts'
import { RequestSyntaxError } from './syntax-error.ts'

/** Receives requests as they are read. Called synchronously from `execute`, in the order `onHead`, `onBody`, `onBodyEnd`. */
export type RequestSink = BodySink & {
  /** Called for each head. If the framing is `none`, the request ends with its head, and no other method is called. */
  onHead(head: ParsedHead): void
}

const endOfHead = Buffer.from('\r\n\r\n')
/** The first byte of a TLS client: a handshake record (RFC 8446 section 5.1). No request begins with it. */
const TLS_HANDSHAKE = 0x16
const CARRIAGE_RETURN = 0x0d
const LINE_FEED = 0x0a

/**
 * Parses the requests of one connection, one after another, in whatever pieces they arrive (RFC 9112 sections 2 to 7). It is as strict as
 * the grammar: input that other parsers might read differently is an error, after which no more of the connection is read.
 *
 * A head that arrives in one piece is read from one text; otherwise each line is read as it arrives.
 */
export class RequestParser {
  readonly #sink: RequestSink
  readonly #head: HeadReader
  readonly #limits: HeadLimits
  #lines: LineReader | undefined
  /** Created for the first request that has a body. */
  #body: BodyReader | undefined
  #isInBody = false
  /** The end of a request's body is unknown: nothing after its head is read. */
  #isLost = false

  /** @param limits of a head; the same limits apply to the trailers separately */
  constructor(sink: RequestSink, limits: HeadLimits) {
    this.#sink = sink
    this.#limits = limits
    this.#head = new HeadReader(limits)
  }

  /** A request has begun to arrive, and its head is incomplete. Leading blank lines are ignored. */
  get isInHead(): boolean {
    return !this.#isInBody && (this.#head.hasBegun || this.#lines?.isEmpty === false)
  }

  /**
   * Reads the next bytes of the connection, up to the end of a request. Returns the offset of that end; the caller must pass the rest
   * again when the next request may be read.
   *
   * @throws {RequestSyntaxError}
   */
  execute(bytes: Buffer, from: number): number {
    if (this.#isLost) return bytes.length
    if (this.#isInBody) return this.#readBody(bytes, from)
    return this.#readBody(bytes, this.#readHead(bytes, from))
  }

  #readBody(bytes: Buffer, from: number): number {
    if (!this.#isInBody || from === bytes.length) return from
    const end = this.#body?.read(bytes, from) ?? -1
    if (end === -1) return bytes.length
    this.#isInBody = false
    return end
  }

  #readHead(bytes: Buffer, from: number): number {
    if (this.#head.hasBegun || (this.#lines && this.#lines.partialBytes > 0))
      return this.#readLines(bytes, from)
    let start = from
    // RFC 9112 section 2.2: empty lines before a request are ignored.
    while (bytes[start] === CARRIAGE_RETURN && bytes[start + 1] === LINE_FEED) start += 2
    const end = bytes.indexOf(endOfHead, start)
    if (end === -1) {
      if (start === bytes.length) return start
      if (bytes[start] === TLS_HANDSHAKE)
        throw new RequestSyntaxError('TLS handshake on a plain HTTP port (TLS_CERT_FILE)')
      return this.#readLines(bytes, start)
    }
    this.#readText(bytes.toString('latin1', start, end + 2))
    this.#endHead()
    return end + 4
  }

  /** @param text a whole head, in which each line ends with CRLF, without the empty line */
  #readText(text: string): void {
    checkLines(text)
    let lineStart = 0
    do {
      const lineEnd = text.indexOf('\r', lineStart)
      if (text.indexOf('\n', lineStart) !== lineEnd + 1)
        throw new RequestSyntaxError('a line that does not end in CRLF')
      if (lineStart === 0) this.#head.readRequestLine(text, 0, lineEnd)
      else this.#head.readField(text, lineStart, lineEnd)
      lineStart = lineEnd + 2
    } while (lineStart < text.length)
  }

  #readLines(bytes: Buffer, from: number): number {
    const lines = (this.#lines ??= new LineReader())
    let at = from
    while (at < bytes.length) {
      const line = lines.read(bytes, at)
      at = lines.next
      if (line === undefined) {
        if (!this.#head.hasBegun && !lines.isEmpty && !beginsLikeRequest(lines.prefix(16)))
          throw new RequestSyntaxError('unknown method, or no request line')
        this.#head.checkUnfinished(lines.partialBytes)
      } else if (line !== '') {
        if (this.#head.hasBegun) this.#head.readField(line, 0, line.length)
        else this.#head.readRequestLine(line, 0, line.length)
      } else if (this.#head.hasBegun) {
        this.#endHead()
        return at
      }
    }
    return at
  }

  #endHead(): void {
    const head = this.#head.finish()
    if (head.framing === 'unknown') this.#isLost = true
    else if (head.framing !== 'none') {
      this.#body ??= new BodyReader(this.#sink, this.#limits)
      if (head.framing === 'chunked') this.#body.beginChunked()
      else this.#body.beginLength(head.contentBytes)
      this.#isInBody = true
    }
    this.#sink.onHead(head)
  }
}
