import { GrowingBuffer } from '../../message/growing-buffer.ts'
import { RequestSyntaxError } from './syntax-error.ts'

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d

/** Characters that no line of a request may contain: control characters, and line ends other than CRLF (RFC 9112 section 2.2). */
const illegal = /[^\t\x20-\x7e\x80-\xff]/

const illegalInLines = /[^\t\r\n\x20-\x7e\x80-\xff]/

/**
 * Checks the characters of several lines, but not their ends.
 *
 * @throws {RequestSyntaxError} for a character that no line may have
 */
export function checkLines(text: string): void {
  if (illegalInLines.test(text)) throw new RequestSyntaxError('invalid character')
}

function checkLine(line: string): void {
  if (illegal.test(line))
    throw new RequestSyntaxError('invalid character, or a line that does not end in CRLF')
}

/**
 * Reads lines that arrive in pieces. Each byte is checked once or twice, no matter how small the pieces are, and a forbidden character is
 * an error as soon as it arrives.
 */
export class LineReader {
  readonly #partial = new GrowingBuffer()
  /** The last received byte is a CR, which only LF may follow. */
  #endsInCr = false
  /** Set by `read`: the offset after the bytes that it has read. */
  next = 0

  /** Bytes received of an incomplete line. */
  get partialBytes(): number {
    return this.#partial.length
  }

  /** Whether nothing has been received, or only the CR of an empty line. */
  get isEmpty(): boolean {
    return this.#partial.length === 0 || (this.#endsInCr && this.#partial.length === 1)
  }

  /** Returns the beginning of the incomplete line, at most `length` characters. */
  prefix(length: number): string {
    return this.#partial.prefix(length)
  }

  /**
   * Returns the next line without its CRLF, one character a byte; undefined if it is incomplete.
   *
   * @throws {RequestSyntaxError} for a character that no line may have
   */
  read(bytes: Buffer, from: number): string | undefined {
    const lineEnd = bytes.indexOf(LINE_FEED, from)
    if (lineEnd === -1) {
      this.#appendPartial(bytes, from)
      this.next = bytes.length
      return undefined
    }
    this.next = lineEnd + 1
    const line =
      this.#partial.length === 0
        ? bytes.toString('latin1', from, lineEnd)
        : this.#completeLine(bytes, from, lineEnd)
    if (line.charCodeAt(line.length - 1) !== CARRIAGE_RETURN)
      throw new RequestSyntaxError('a line ends with a bare LF')
    const text = line.slice(0, -1)
    checkLine(text)
    return text
  }

  #completeLine(bytes: Buffer, from: number, to: number): string {
    this.#endsInCr = false
    this.#partial.append(bytes.subarray(from, to))
    return this.#partial.take()
  }

  #appendPartial(bytes: Buffer, from: number): void {
    if (from === bytes.length) return
    if (this.#endsInCr) throw new RequestSyntaxError('a bare CR')
    this.#endsInCr = bytes[bytes.length - 1] === CARRIAGE_RETURN
    checkLine(bytes.toString('latin1', from, this.#endsInCr ? bytes.length - 1 : bytes.length))
    this.#partial.append(from === 0 ? bytes : bytes.subarray(from))
  }
}
