import { GrowingBuffer } from '../../message/growing-buffer.ts'
import { ChunkedReader } from './chunked-reader.ts'
import { headEndIn, problemOfUnfinishedHead, withoutEmptyLine } from './head-lines.ts'
import { InterimBytes } from './interim-bytes.ts'
import { ResponseHeadReader, ResponseSyntaxError, type ResponseHead } from './response-head.ts'

/** Receives one response as it is read. Called synchronously from `execute` and `finish`, in the order in which the methods are listed. */
export type ResponseSink = {
  /** An interim response (1xx other than 101). */
  onInterimResponse(head: ResponseHead): void
  onHead(head: ResponseHead): void
  /**
   * Called with a piece of the body, never empty. The content of one read comes in one piece, except for long chunks. `last`: the body is
   * known to end with it.
   */
  onBody(chunk: Buffer, last: boolean): void
  /** Trailers of a chunked body, if there are any: name, value, name, value…; names in lower case. */
  onTrailers(fields: readonly string[]): void
  /** The response is complete. `persistent`: the connection may serve another request. */
  onEnd(persistent: boolean): void
  /** Called after a 101: from here on the connection speaks another protocol. `rest` is the part of it that has already been read. */
  onUpgrade(head: ResponseHead, rest: Buffer): void
}

const idle = 0
const inHead = 1
const inLength = 2
const inChunked = 3
const untilClose = 4

const nothing = Buffer.alloc(0)
const MAX_HEAD_BYTES = 64 * 1024
const lineFeed = 0x0a
const carriageReturn = 0x0d

/**
 * Parses the responses of one connection, one after another, in whatever pieces they arrive (RFC 9112 sections 4 to 7).
 *
 * Backends are trusted to mean well, not to be correct: bytes that deviate from the grammar are an error, and the parser never guesses.
 * Memory is bounded by one head of 64 KiB, and trailers of 64 KiB. Any number of interim responses may arrive, but at most 1 MiB of them.
 *
 * An empty line after an interim response is skipped, because Helidon 4 and others add one after `100 Continue` (RFC 9112 section 2.2 makes
 * servers skip empty lines before a request). It carries no data, and a response is expected either way.
 */
export class ResponseParser {
  readonly #heads = new ResponseHeadReader()
  #state = idle
  #method = ''
  #sink: ResponseSink | undefined
  /** The received part of an incomplete head. */
  readonly #partial = new GrowingBuffer()
  /** Bytes left of a body with a length. */
  #left = 0
  /** Created for the first chunked response. */
  #chunked: ChunkedReader | undefined
  #persistent = false
  readonly #interim = new InterimBytes()
  /** Whether an empty line here would be the one after an interim response. */
  #mayBeBlank = false

  /** Expects the response to a request of this method. */
  expect(method: string, sink: ResponseSink): void {
    this.#state = inHead
    this.#method = method
    this.#sink = sink
    this.#interim.clear()
    this.#mayBeBlank = false
  }

  /** Whether no byte of the expected response has arrived. */
  get untouched(): boolean {
    return this.#state === inHead && this.#partial.length === 0 && this.#interim.isZero
  }

  /**
   * Takes the next bytes of the connection.
   *
   * @throws {ResponseSyntaxError} for invalid bytes, and for data outside a response; the connection cannot be used any more
   */
  execute(input: Buffer): void {
    let chunk = input
    while (chunk.length > 0) {
      switch (this.#state) {
        case idle:
          throw new ResponseSyntaxError('unexpected data outside a response')
        case inHead:
          chunk = this.#readHead(chunk)
          break
        case inLength:
          chunk = this.#readLength(chunk)
          break
        case inChunked: {
          const rest = this.#chunked?.read(chunk)
          if (rest === undefined) return
          this.#end()
          chunk = rest
          break
        }
        default:
          this.#sink?.onBody(chunk, false)
          return
      }
    }
  }

  /** The backend has ended the connection in an orderly way. Returns whether that completed the response. */
  finish(): boolean {
    if (this.#state !== untilClose) return false
    this.#persistent = false
    this.#end()
    return true
  }

  #end(): void {
    const sink = this.#sink
    this.#state = idle
    this.#sink = undefined
    sink?.onEnd(this.#persistent)
  }

  #readHead(input: Buffer): Buffer {
    const chunk = this.#mayBeBlank ? this.#withoutBlankLine(input) : input
    if (chunk.length === 0) return nothing
    const before = this.#partial.length
    if (before > 0) this.#partial.append(chunk)
    const bytes = before > 0 ? this.#partial.bytes : chunk
    // Each byte is searched once, no matter how small the pieces are: the end of an unfinished head can only be in the new bytes.
    const headEnd = before === 0 || chunk.includes(lineFeed) ? headEndIn(bytes, before) : -1
    // An unfinished head may already have all but the last byte of its end.
    if (headEnd === -1 ? bytes.length > MAX_HEAD_BYTES + 3 : headEnd > MAX_HEAD_BYTES)
      throw new ResponseSyntaxError('response head larger than 64 KiB')
    if (headEnd === -1) {
      const problem = problemOfUnfinishedHead(bytes, before)
      if (problem !== undefined) throw new ResponseSyntaxError(problem)
      if (before === 0) this.#partial.append(chunk)
      return nothing
    }
    this.#partial.clear()
    const head = this.#heads.read(bytes.toString('latin1', 0, headEnd + 2), this.#method)
    const end = headEnd + 4
    return this.#begin(head, end, chunk.subarray(end - before))
  }

  /** Removes an empty line after an interim response. If only its CR has arrived, the CR is kept until the next read. */
  #withoutBlankLine(chunk: Buffer): Buffer {
    const bytes = this.#partial.length > 0 ? Buffer.concat([this.#partial.bytes, chunk]) : chunk
    this.#partial.clear()
    if (bytes.length === 1 && bytes[0] === carriageReturn) {
      this.#partial.append(bytes)
      return nothing
    }
    this.#mayBeBlank = false
    return withoutEmptyLine(bytes)
  }

  #begin(head: ResponseHead, headBytes: number, rest: Buffer): Buffer {
    const sink = this.#sink
    if (head.status === 101) {
      this.#state = idle
      sink?.onUpgrade(head, rest)
      return nothing
    }
    if (head.status < 200) {
      this.#interim.add(headBytes)
      sink?.onInterimResponse(head)
      this.#mayBeBlank = true
      return rest
    }
    this.#persistent = head.persistent
    sink?.onHead(head)
    switch (head.framing.kind) {
      case 'length':
        this.#left = head.framing.bytes
        if (this.#left === 0) this.#end()
        else this.#state = inLength
        break
      case 'chunked':
        this.#state = inChunked
        if (!sink) break
        this.#chunked ??= new ChunkedReader()
        this.#chunked.begin(sink)
        break
      case 'until-close':
        this.#state = untilClose
        break
      case 'none':
        this.#end()
    }
    return rest
  }

  #readLength(chunk: Buffer): Buffer {
    if (chunk.length < this.#left) {
      this.#left -= chunk.length
      this.#sink?.onBody(chunk, false)
      return nothing
    }
    const body = chunk.length === this.#left ? chunk : chunk.subarray(0, this.#left)
    const rest = chunk.length === this.#left ? nothing : chunk.subarray(this.#left)
    this.#left = 0
    this.#sink?.onBody(body, true)
    this.#end()
    return rest
  }
}
