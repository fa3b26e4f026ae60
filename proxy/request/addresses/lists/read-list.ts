import { closeSync, openSync, readSync } from 'node:fs'
import {
  isInRange,
  isIpv4,
  missesNat64,
  parseClientRange,
  type AddressRange,
  type IpAddress,
} from '../ip-address.ts'
import { RangeBuilder } from './range-builder.ts'
import type { RangeData } from './sorted-ranges.ts'

/** A line of a list to report, such as one that is neither an entry nor a comment. */
export type BadLine = { readonly line: number; readonly text: string }

export type ReadList =
  | {
      readonly data: RangeData
      /** The number of lines with an entry. */
      readonly entries: number
      /** The line number of the first entry that contains every address. */
      readonly everybody?: number
      /** The first entry that appears to match clients behind NAT64, but does not. */
      readonly missesNat64?: BadLine
      /** The first line whose entry contains the address to find. */
      readonly found?: number
    }
  /** At most `MAX_BAD_LINES` lines. `more`: there are further bad lines. */
  | { readonly bad: readonly BadLine[]; readonly more: boolean }
  | { readonly tooMany: number }

const MAX_ENTRIES = 2_000_000
const MAX_BAD_LINES = 10
const PIECE_BYTES = 256 * 1024
/** A longer line is a comment, or the file is not a list. */
const MAX_LINE_BYTES = 1024
const MAX_SHOWN = 60

const CR = 0x0d
const LF = 0x0a

/**
 * Reads a list of addresses: one address or CIDR per line, blank lines, and comments from `#` or `;` to the end of the line. Lines end in
 * LF or CRLF; a byte order mark is skipped. A million entries take a second.
 *
 * @param find an address to look for
 * @throws the error of the file system
 */
export function readList(path: string, find?: IpAddress): ReadList {
  const builder = new RangeBuilder(MAX_ENTRIES)
  const bad: BadLine[] = []
  let more = false
  let entries = 0
  let everybody: number | undefined
  let missed: BadLine | undefined
  let found: number | undefined
  for (const { line, text } of linesOf(path)) {
    const entry = entryOf(line === 1 ? text.replace(/^\u00ef\u00bb\u00bf/, '') : text)
    if (entry === '') continue
    const range = parseClientRange(entry)
    if (!range) {
      if (bad.length < MAX_BAD_LINES) bad.push({ line, text: entry.slice(0, MAX_SHOWN) })
      else more = true
      continue
    }
    if (++entries > MAX_ENTRIES) return { tooMany: MAX_ENTRIES }
    builder.add(range)
    if (isEverybody(range)) everybody ??= line
    if (!missed && missesNat64(range)) missed = { line, text: entry }
    if (find && found === undefined && isInRange(find, range)) found = line
  }
  if (bad.length > 0) return { bad, more }
  return {
    data: builder.build(),
    entries,
    ...(everybody !== undefined && { everybody }),
    ...(missed && { missesNat64: missed }),
    ...(found !== undefined && { found }),
  }
}

/** Whether the range contains all addresses, or all of IPv4. */
function isEverybody({ address, bits }: AddressRange): boolean {
  return bits === 0 || (bits === 96 && isIpv4(address))
}

/** The entry of a line, without comments and surrounding blanks. */
function entryOf(text: string): string {
  const end = text.search(/[#;]/)
  return (end === -1 ? text : text.slice(0, end)).trim()
}

/** Yields the lines of a file without their ends, one character per byte; only the beginning of a long line. */
function* linesOf(path: string): Generator<{ readonly line: number; readonly text: string }> {
  const file = openSync(path, 'r')
  try {
    const piece = Buffer.allocUnsafe(PIECE_BYTES)
    let begun = ''
    let line = 1
    for (;;) {
      const length = readSync(file, piece, 0, PIECE_BYTES, null)
      if (length === 0) break
      let start = 0
      while (start < length) {
        const found = piece.indexOf(LF, start)
        const end = found === -1 || found >= length ? length : found
        if (begun.length < MAX_LINE_BYTES)
          begun += piece.toString('latin1', start, Math.min(end, start + MAX_LINE_BYTES))
        start = end + 1
        if (end === length) break
        yield { line, text: withoutReturn(begun) }
        line++
        begun = ''
      }
    }
    yield { line, text: withoutReturn(begun) }
  } finally {
    closeSync(file)
  }
}

function withoutReturn(text: string): string {
  return text.charCodeAt(text.length - 1) === CR ? text.slice(0, -1) : text
}
