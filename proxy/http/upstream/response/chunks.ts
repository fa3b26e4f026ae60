import { ResponseSyntaxError } from './response-head.ts'

// A line with a chunk size (RFC 9112 section 7.1): leading zeros, up to 13 hexadecimal digits, which stay below 2^52, and extensions,
// which are ignored.
export const MAX_CHUNK_LINE_BYTES = 1024
const MAX_TRAILER_BYTES = 64 * 1024
const chunkLine = /^0*([0-9a-fA-F]{1,13})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/

/** @param bytes of the line of a chunk, with its CR @throws {ResponseSyntaxError} if it is too long */
export function checkLineLength(bytes: number): void {
  if (bytes > MAX_CHUNK_LINE_BYTES) throw new ResponseSyntaxError('line longer than 1 KiB in a chunked body')
}

/** @param bytes of all trailers, with their line ends @throws {ResponseSyntaxError} if they are too long */
export function checkTrailerLength(bytes: number): void {
  if (bytes > MAX_TRAILER_BYTES) throw new ResponseSyntaxError('trailers larger than 64 KiB')
}

/** @param line up to its LF @throws {ResponseSyntaxError} if there is no CR at its end */
export function withoutCr(line: string): string {
  if (!line.endsWith('\r')) throw new ResponseSyntaxError('line ends with a bare LF')
  return line.slice(0, -1)
}

/**
 * The size of the chunk after this line; 0 for the last chunk.
 *
 * @throws {ResponseSyntaxError}
 */
export function parseChunkSize(line: string): number {
  const size = chunkLine.exec(line)?.[1]
  if (size === undefined) throw new ResponseSyntaxError('invalid chunk size')
  return Number.parseInt(size, 16)
}
