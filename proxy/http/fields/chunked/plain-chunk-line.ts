import { token } from '../../message/token.ts'

const CARRIAGE_RETURN = 0x0d
const LINE_FEED = 0x0a
const SEMICOLON = 0x3b
const EQUALS_SIGN = 0x3d
/** The maximum number of digits of a size that is read here. */
const MAX_DIGITS = 8

/** The values of hexadecimal digits by their code; -1 for any other byte. */
const digitValues = Int8Array.from({ length: 256 }, (_, code) => {
  const value = Number.parseInt(String.fromCharCode(code), 16)
  return Number.isNaN(value) ? -1 : value
})

/** 1 at the code of each `tchar` (RFC 9110 section 5.6.2). */
const tokenBytes = Uint8Array.from({ length: 256 }, (_, code) =>
  token.test(String.fromCharCode(code)) ? 1 : 0,
)

/**
 * Reads a line with a chunk size without creating a string, which would take ten times as long and matters if chunks have one byte each.
 * Reads only complete lines of the usual form: a size of few digits, and extensions without quotes (RFC 9112 section 7.1.1).
 */
export class PlainChunkLine {
  /** Set by `read`: bytes of the chunk. */
  size = 0
  /** Set by `read`: the offset at which the chunk begins. */
  next = 0

  /** Returns whether the line was read. If not, it may be anything: valid, invalid or incomplete. */
  read(bytes: Buffer, from: number): boolean {
    let at = from
    let size = 0
    for (; at < from + MAX_DIGITS; at++) {
      const value = digitValues[bytes[at] ?? 0] ?? -1
      if (value < 0) break
      size = size * 16 + value
    }
    if (at === from) return false
    while (bytes[at] === SEMICOLON) {
      const name = at + 1
      at = endOfToken(bytes, name)
      if (at === name) return false
      if (bytes[at] !== EQUALS_SIGN) continue
      const value = at + 1
      at = endOfToken(bytes, value)
      if (at === value) return false
    }
    if (bytes[at] !== CARRIAGE_RETURN || bytes[at + 1] !== LINE_FEED) return false
    this.size = size
    this.next = at + 2
    return true
  }
}

function endOfToken(bytes: Buffer, from: number): number {
  let at = from
  while (tokenBytes[bytes[at] ?? 0] === 1) at++
  return at
}
