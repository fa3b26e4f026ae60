import { ResponseSyntaxError } from './response-head.ts'

// A chunk-size line: 15 hexadecimal digits are below 2^60; extensions have no use here but must end.
export const maxChunkLineBytes = 1024
const chunkLine = /^([0-9a-fA-F]{1,13})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/
const lineFeed = 0x0a
const carriageReturn = 0x0d

/**
 * The first line of a part of a chunked body without its CRLF, or undefined where it has not arrived whole.
 *
 * @throws {ResponseSyntaxError} for a line that is too long or has no CR
 */
export function takeLine(bytes: Buffer): { text: string; rest: Buffer } | undefined {
  const lineEnd = bytes.indexOf(lineFeed)
  if (lineEnd === -1 ? bytes.length > maxChunkLineBytes : lineEnd > maxChunkLineBytes)
    throw new ResponseSyntaxError('line longer than 1 KiB in a chunked body')
  if (lineEnd === -1) return undefined
  if (lineEnd === 0 || bytes[lineEnd - 1] !== carriageReturn)
    throw new ResponseSyntaxError('line ends with a bare LF')
  return { text: bytes.toString('latin1', 0, lineEnd - 1), rest: bytes.subarray(lineEnd + 1) }
}

/**
 * The bytes of the chunk behind this line; 0 for the last.
 *
 * @throws {ResponseSyntaxError}
 */
export function parseChunkSize(line: string): number {
  const size = chunkLine.exec(line)?.[1]
  if (size === undefined) throw new ResponseSyntaxError('invalid chunk size')
  return Number.parseInt(size, 16)
}
