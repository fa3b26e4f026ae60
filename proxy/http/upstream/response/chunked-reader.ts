import { FramingExcess } from '../../fields/chunked/framing-excess.ts'
import { PlainChunkLine } from '../../fields/chunked/plain-chunk-line.ts'
import { GrowingBuffer } from '../../message/growing-buffer.ts'
import { JoinedBytes, MIN_SEPARATE_BYTES } from '../../message/joined-bytes.ts'
import {
  checkLineLength,
  checkTrailerLength,
  MAX_CHUNK_LINE_BYTES,
  parseChunkSize,
  withoutCr,
} from './chunks.ts'
import { parseTrailer, ResponseSyntaxError } from './response-head.ts'

/** Receives a chunked body. */
type ChunkedSink = {
  /** A piece of the body, never empty. The content of one read comes in one piece, except for long chunks. `last` is always false. */
  onBody(chunk: Buffer, last: boolean): void
  /** The trailers, if there are any: name, value, name, value…; names in lower case. */
  onTrailers(fields: readonly string[]): void
}

const inChunkSize = 0
const inChunkData = 1
const inChunkEnd = 2
const inTrailers = 3

const nothing = Buffer.alloc(0)
const lineFeed = 0x0a
const carriageReturn = 0x0d

/** Reads the chunked bodies of one connection's responses, one after another (RFC 9112 section 7.1). */
export class ChunkedReader {
  #sink: ChunkedSink | undefined
  readonly #plainLine = new PlainChunkLine()
  readonly #excess = new FramingExcess()
  /** The content of the body in this read. */
  readonly #content = new JoinedBytes()
  /** The received part of an incomplete line. */
  readonly #partial = new GrowingBuffer()
  #state = inChunkSize
  /** Bytes left of the chunk. */
  #left = 0
  #trailerBytes = 0
  #trailers: string[] | undefined

  /** Expects the next body. */
  begin(sink: ChunkedSink): void {
    this.#sink = sink
    this.#state = inChunkSize
    this.#excess.clear()
    this.#trailerBytes = 0
    this.#trailers = undefined
  }

  /**
   * Reads the next bytes of the body. Returns the bytes after its end; undefined if it continues.
   *
   * @throws {ResponseSyntaxError}
   */
  read(bytes: Buffer): Buffer | undefined {
    let chunk = bytes
    try {
      while (chunk.length > 0) {
        switch (this.#state) {
          case inChunkSize:
            chunk = this.#readChunks(chunk)
            break
          case inChunkData:
            chunk = this.#readChunkData(chunk)
            break
          case inChunkEnd:
            chunk = this.#readChunkEnd(chunk)
            break
          default:
            chunk = this.#readTrailer(chunk)
            if (this.#state !== inTrailers) return chunk
        }
      }
      return undefined
    } finally {
      // Bytes before an error are as valid as if they had come in a read of their own.
      this.#flushContent()
    }
  }

  /** Reads all chunks that have arrived completely; each may have a single byte. Returns the rest, for which `#state` is set. */
  #readChunks(chunk: Buffer): Buffer {
    const line = this.#plainLine
    let at = 0
    while (this.#partial.length === 0 && line.read(chunk, at)) {
      if (line.next - at > MAX_CHUNK_LINE_BYTES) break
      this.#beginChunk(line.size, line.next - at - 2)
      at = line.next
      if (line.size === 0) return chunk.subarray(at)
      const end = at + line.size
      if (chunk[end] !== carriageReturn || chunk[end + 1] !== lineFeed) return chunk.subarray(at)
      this.#addContent(chunk, at, end)
      at = end + 2
      this.#state = inChunkSize
    }
    return this.#readChunkSize(at === 0 ? chunk : chunk.subarray(at))
  }

  #readChunkSize(chunk: Buffer): Buffer {
    const line = this.#readLine(chunk)
    if (line === undefined) return nothing
    this.#beginChunk(parseChunkSize(line.text), line.text.length)
    return line.rest
  }

  #beginChunk(bytes: number, lineBytes: number): void {
    this.#left = bytes
    this.#state = bytes === 0 ? inTrailers : inChunkData
    if (!this.#excess.addChunk(lineBytes, bytes))
      throw new ResponseSyntaxError('too many bytes in chunk sizes and extensions')
  }

  #readChunkData(chunk: Buffer): Buffer {
    const end = Math.min(chunk.length, this.#left)
    this.#left -= end
    this.#addContent(chunk, 0, end)
    if (this.#left === 0) this.#state = inChunkEnd
    return chunk.subarray(end)
  }

  #addContent(bytes: Buffer, from: number, to: number): void {
    if (to - from < MIN_SEPARATE_BYTES) this.#content.add(bytes, from, to)
    else {
      this.#flushContent()
      this.#sink?.onBody(from === 0 && to === bytes.length ? bytes : bytes.subarray(from, to), false)
    }
  }

  #flushContent(): void {
    if (!this.#content.isEmpty) this.#sink?.onBody(this.#content.take(), false)
  }

  #readChunkEnd(chunk: Buffer): Buffer {
    const line = this.#readLine(chunk)
    if (line === undefined) return nothing
    if (line.text !== '') throw new ResponseSyntaxError('chunk longer than its declared size')
    this.#state = inChunkSize
    return line.rest
  }

  /** Reads one line. The empty line after the trailers leaves the state `inTrailers`. */
  #readTrailer(chunk: Buffer): Buffer {
    const line = this.#readLine(chunk, checkTrailerLength, this.#trailerBytes)
    if (line === undefined) return nothing
    if (line.text === '') {
      this.#flushContent()
      if (this.#trailers) this.#sink?.onTrailers(this.#trailers)
      this.#trailers = undefined
      this.#state = inChunkSize
      return line.rest
    }
    const trailer = parseTrailer(line.text)
    if (this.#trailers) this.#trailers.push(...trailer)
    else this.#trailers = [...trailer]
    this.#trailerBytes += line.text.length + 2
    return line.rest
  }

  /**
   * The next line without its CRLF; undefined if it is incomplete.
   *
   * @param before bytes of previous lines that `checkLength` counts too
   */
  #readLine(
    chunk: Buffer,
    checkLength = checkLineLength,
    before = 0,
  ): { text: string; rest: Buffer } | undefined {
    const partial = this.#partial
    const lineEnd = chunk.indexOf(lineFeed)
    checkLength(before + partial.length + (lineEnd === -1 ? chunk.length : lineEnd))
    if (lineEnd === -1) {
      partial.append(chunk)
      return undefined
    }
    if (partial.length === 0)
      return { text: withoutCr(chunk.toString('latin1', 0, lineEnd)), rest: chunk.subarray(lineEnd + 1) }
    partial.append(chunk.subarray(0, lineEnd))
    return { text: withoutCr(partial.take()), rest: chunk.subarray(lineEnd + 1) }
  }
}
