import { FramingExcess } from '../../fields/chunked/framing-excess.ts'
import { PlainChunkLine } from '../../fields/chunked/plain-chunk-line.ts'
import { JoinedBytes, MIN_SEPARATE_BYTES } from '../../message/joined-bytes.ts'
import { tokenCharacters } from '../../message/token.ts'
import { readFieldLine } from './field-line.ts'
import { HeadSize, type HeadLimits } from './head-size.ts'
import { LineReader } from './line-reader.ts'
import { RequestSyntaxError } from './syntax-error.ts'

/** Receives the body of one request. */
export type BodySink = {
  /** A piece of the body, never empty. The content of one read comes in one piece, except for long chunks. */
  onBody(piece: Buffer): void
  /**
   * Called when all of the body has arrived.
   *
   * @param trailers name, value, name, value… with names in lower case
   */
  onBodyEnd(trailers: readonly string[]): void
}

const inLength = 0
const inChunkSize = 1
const inChunk = 2
const inChunkEnd = 3
const inTrailers = 4

const MAX_EXTENSION_BYTES = 16 * 1024
/** Digits of a chunk size, leading zeros included. */
const MAX_SIZE_DIGITS = 1024

const quotedString = String.raw`"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"`
/** RFC 9112 section 7.1.1, without blanks, which other parsers read as a part of the size. */
const chunkLine = new RegExp(
  `^([0-9a-fA-F]+)((?:;[${tokenCharacters}]+(?:=(?:[${tokenCharacters}]+|${quotedString}))?)*)$`,
)
const beginsLikeSize = /^[0-9a-fA-F]+\r?$/
const CARRIAGE_RETURN = 0x0d
const LINE_FEED = 0x0a
const noTrailers: readonly string[] = []

/** Reads the bodies of one connection's requests, one after another (RFC 9112 sections 6 and 7). */
export class BodyReader {
  readonly #lines = new LineReader()
  readonly #plainLine = new PlainChunkLine()
  /** The content of a chunked body in this read. */
  readonly #content = new JoinedBytes()
  #state = inLength
  #sink: BodySink
  /** Bytes left of the body or of the chunk. */
  #left = 0
  /** The CR after a chunk has been read. */
  #endHasBegun = false
  #isInExtension = false
  readonly #framingExcess = new FramingExcess()
  #trailers: string[] | undefined
  readonly #trailerSize: HeadSize

  constructor(sink: BodySink, trailerLimits: HeadLimits) {
    this.#sink = sink
    this.#trailerSize = new HeadSize(trailerLimits)
  }

  /** @param bytes more than 0 */
  beginLength(bytes: number): void {
    this.#state = inLength
    this.#left = bytes
  }

  beginChunked(): void {
    this.#state = inChunkSize
    this.#framingExcess.clear()
    this.#trailers = undefined
    this.#trailerSize.clear()
  }

  /**
   * Reads the next bytes of the body. Returns the offset at which the body ends; -1 if it continues after them.
   *
   * @throws {RequestSyntaxError}
   */
  read(bytes: Buffer, from: number): number {
    if (this.#state === inLength) return this.#readLength(bytes, from)
    try {
      const end = this.#readChunks(bytes, from)
      if (end === -1) return -1
      this.#flushContent()
      this.#sink.onBodyEnd(this.#trailers ?? noTrailers)
      this.#trailers = undefined
      return end
    } finally {
      // Bytes before an error are as valid as if they had come in a read of their own.
      this.#flushContent()
    }
  }

  #flushContent(): void {
    if (!this.#content.isEmpty) this.#sink.onBody(this.#content.take())
  }

  #readLength(bytes: Buffer, from: number): number {
    const to = Math.min(bytes.length, from + this.#left)
    this.#left -= to - from
    this.#sink.onBody(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to))
    if (this.#left > 0) return -1
    this.#sink.onBodyEnd(noTrailers)
    return to
  }

  #readChunks(bytes: Buffer, from: number): number {
    let at = from
    while (at < bytes.length) {
      switch (this.#state) {
        case inChunkSize:
          at = this.#readChunkSize(bytes, at)
          break
        case inChunk:
          at = this.#readChunk(bytes, at)
          break
        case inChunkEnd:
          at = this.#readChunkEnd(bytes, at)
          break
        default:
          at = this.#readTrailer(bytes, at)
          if (this.#state !== inTrailers) return at
      }
    }
    return -1
  }

  #readChunk(bytes: Buffer, from: number): number {
    const to = Math.min(bytes.length, from + this.#left)
    this.#left -= to - from
    if (to - from < MIN_SEPARATE_BYTES) this.#content.add(bytes, from, to)
    else {
      this.#flushContent()
      this.#sink.onBody(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to))
    }
    if (this.#left > 0) return to
    if (bytes[to] === CARRIAGE_RETURN && bytes[to + 1] === LINE_FEED) {
      this.#state = inChunkSize
      return to + 2
    }
    this.#state = inChunkEnd
    return to
  }

  #readChunkSize(bytes: Buffer, from: number): number {
    const plain = this.#plainLine
    if (this.#lines.partialBytes === 0 && plain.read(bytes, from)) {
      checkExtension(plain.next - from)
      this.#beginChunk(plain.size, plain.next - from - 2)
      return plain.next
    }
    const line = this.#lines.read(bytes, from)
    if (line === undefined) {
      this.#checkUnfinishedSize(bytes, from)
      return bytes.length
    }
    this.#isInExtension = false
    const extension = line.indexOf(';')
    if (extension !== -1) checkExtension(line.length - extension)
    const size = chunkLine.exec(line)?.[1]
    if (size === undefined || size.length > MAX_SIZE_DIGITS)
      throw new RequestSyntaxError('invalid chunk size')
    const bytesOfChunk = Number.parseInt(size, 16)
    if (bytesOfChunk > Number.MAX_SAFE_INTEGER) throw new RequestSyntaxError('chunk size overflow')
    this.#beginChunk(bytesOfChunk, line.length)
    return this.#lines.next
  }

  #beginChunk(bytes: number, lineBytes: number): void {
    this.#left = bytes
    this.#state = bytes === 0 ? inTrailers : inChunk
    if (!this.#framingExcess.addChunk(lineBytes, bytes))
      throw new RequestSyntaxError('too many bytes in chunk sizes and extensions', 'extension-size')
  }

  /** Rejects an incomplete line as soon as it cannot become a valid size. */
  #checkUnfinishedSize(bytes: Buffer, from: number): void {
    if (!this.#isInExtension) {
      const text = bytes.toString('latin1', from)
      const extension = text.indexOf(';')
      const size = extension === -1 ? text : text.slice(0, extension)
      if (size !== '' && size !== '\r' && !beginsLikeSize.test(size))
        throw new RequestSyntaxError('invalid chunk size')
      this.#isInExtension = extension !== -1
    }
    const bytesBeyondSize = this.#lines.partialBytes - MAX_SIZE_DIGITS
    if (this.#isInExtension) checkExtension(bytesBeyondSize)
    else if (bytesBeyondSize > 0) throw new RequestSyntaxError('invalid chunk size')
  }

  #readChunkEnd(bytes: Buffer, from: number): number {
    const byte = bytes[from]
    if (byte !== (this.#endHasBegun ? LINE_FEED : CARRIAGE_RETURN))
      throw new RequestSyntaxError('chunk longer than its declared size')
    if (this.#endHasBegun) this.#state = inChunkSize
    this.#endHasBegun = !this.#endHasBegun
    return from + 1
  }

  #readTrailer(bytes: Buffer, from: number): number {
    const line = this.#lines.read(bytes, from)
    if (line === undefined) {
      this.#trailerSize.checkUnfinished(this.#lines.partialBytes)
      return bytes.length
    }
    if (line === '') {
      this.#state = inLength
      return this.#lines.next
    }
    this.#trailerSize.addField(line.length)
    this.#trailers ??= []
    // Another parser might frame the next message by a length or a coding in the trailers.
    const framing = readFieldLine(line, 0, line.length, this.#trailers, [])
    if (framing === 'content-length' || framing === 'transfer-encoding')
      throw new RequestSyntaxError('framing header in the trailers')
    return this.#lines.next
  }
}

function checkExtension(bytes: number): void {
  if (bytes > MAX_EXTENSION_BYTES)
    throw new RequestSyntaxError('a chunk extension is too large', 'extension-size')
}
