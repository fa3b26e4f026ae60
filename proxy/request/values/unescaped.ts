/** A backend that unescapes twice reads a double escape as the same value; no backend unescapes more often. */
const MAX_ROUNDS = 4

const space = 0x20
const quote = 0x22
const percent = 0x25
const plus = 0x2b
const backslash = 0x5c
const lowerU = 0x75

/**
 * Decodes everything that some backend decodes: escapes (`%41`, `%u0041`), `+` for a space, and quotes with the backslash escapes in them.
 * Steps are repeated until nothing changes, in a few passes over the bytes, because regular expressions take ten times as long for
 * thousands of escapes.
 *
 * @param sent one character per byte
 * @param isQuoted whether to remove `"` and `\`
 */
export function unescapedBytes(sent: string, isQuoted: boolean): Buffer {
  const bytes = Buffer.from(sent, 'latin1')
  return bytes.subarray(0, unescape(bytes, bytes.length, isQuoted))
}

/** Does the same, and decodes the bytes as UTF-8. Called for each of possibly thousands of short names in a header. */
export function unescapedText(sent: string, isQuoted: boolean): string {
  const bytes = sent.length <= scratch.length ? scratch : Buffer.allocUnsafeSlow(sent.length)
  return bytes.toString('utf8', 0, unescape(bytes, bytes.write(sent, 'latin1'), isQuoted))
}

const scratch = Buffer.allocUnsafeSlow(2048)

/**
 * Returns what a quoted text is to backends that unquote it before they decode it, after they have decoded it once, and so on, each decoded
 * to the end. They may differ: in `\36%33` the backslash stands for the next digit, or for a byte with two digits more.
 *
 * @param sent one character per byte
 * @returns one character per byte
 */
export function unquotedReadings(sent: string): ReadonlySet<string> {
  const decoded = Buffer.from(sent, 'latin1')
  const readings = new Set<string>()
  let length = decoded.length
  for (let round = 0; round <= MAX_ROUNDS; round++) {
    const read = Buffer.from(decoded.subarray(0, length))
    const unquoted = unquote(read, length)
    const end = unescape(read, unquoted === unchanged ? length : unquoted, true)
    readings.add(read.toString('latin1', 0, end))
    let isChanged = false
    for (const pass of passes) {
      const next = pass(decoded, length)
      if (next === unchanged) continue
      isChanged = true
      length = next
    }
    if (!isChanged) break
  }
  return readings
}

/** @returns the new length */
function unescape(bytes: Buffer, length: number, isQuoted: boolean): number {
  let end = length
  for (let round = 0; round < MAX_ROUNDS; round++) {
    let isChanged = false
    for (const pass of isQuoted ? quotedPasses : passes) {
      const next = pass(bytes, end)
      if (next === unchanged) continue
      isChanged = true
      end = next
    }
    if (!isChanged) break
  }
  return end
}

/** Rewrites the first `length` bytes in place, which never makes them longer. Returns the new length, or `unchanged`. */
type Pass = (bytes: Buffer, length: number) => number

const unchanged = -1

const passes: readonly Pass[] = [decodeBytes, decodeUnits]
const quotedPasses: readonly Pass[] = [...passes, unquote]

/** Decodes `%41`. */
function decodeBytes(bytes: Buffer, length: number): number {
  let end = 0
  let isChanged = false
  for (let at = 0; at < length; at++) {
    const byte = bytes[at] ?? 0
    const value = byte === percent && at + 2 < length ? hexAt(bytes, at + 1, 2) : -1
    bytes[end++] = value === -1 ? byte : value
    if (value === -1) continue
    isChanged = true
    at += 2
  }
  return isChanged ? end : unchanged
}

/** Decodes `%u0041`, a UTF-16 code unit, and `+`. A surrogate is not a character. */
function decodeUnits(bytes: Buffer, length: number): number {
  let end = 0
  let isChanged = false
  for (let at = 0; at < length; at++) {
    const byte = bytes[at] ?? 0
    const isUnit = byte === percent && at + 5 < length && ((bytes[at + 1] ?? 0) | 0x20) === lowerU
    const unit = isUnit ? hexAt(bytes, at + 2, 4) : -1
    if (unit !== -1) {
      end = putUtf8(bytes, end, unit === plus ? space : unit)
      at += 5
      isChanged = true
    } else if (byte === plus) {
      bytes[end++] = space
      isChanged = true
    } else bytes[end++] = byte
  }
  return isChanged ? end : unchanged
}

/** Removes all quotes and backslashes. A backslash before three octal digits stands for a byte, otherwise for the next character. */
function unquote(bytes: Buffer, sentLength: number): number {
  let length = 0
  // First the quotes, then the backslashes: a parser that removes quotes reads `\"101` as `\101`.
  for (let at = 0; at < sentLength; at++) {
    const byte = bytes[at] ?? 0
    if (byte !== quote) bytes[length++] = byte
  }
  let isChanged = length < sentLength
  let end = 0
  for (let at = 0; at < length; at++) {
    const byte = bytes[at] ?? 0
    if (byte !== backslash) {
      bytes[end++] = byte
      continue
    }
    isChanged = true
    const octal = at + 3 < length ? octalAt(bytes, at + 1) : -1
    if (octal !== -1) {
      bytes[end++] = octal
      at += 3
    } else if (at + 1 < length) bytes[end++] = bytes[++at] ?? 0
  }
  return isChanged ? end : unchanged
}

function hexAt(bytes: Buffer, start: number, digits: number): number {
  let value = 0
  for (let at = start; at < start + digits; at++) {
    const byte = (bytes[at] ?? 0) | 0x20
    const isDigit = byte >= 0x30 && byte <= 0x39 && (bytes[at] ?? 0) >= 0x30
    if (!isDigit && !(byte >= 0x61 && byte <= 0x66)) return -1
    value = value * 16 + (isDigit ? byte - 0x30 : byte - 0x57)
  }
  return value
}

function octalAt(bytes: Buffer, start: number): number {
  let value = 0
  for (let at = start; at < start + 3; at++) {
    const digit = (bytes[at] ?? 0) - 0x30
    if (digit < 0 || digit > (at === start ? 3 : 7)) return -1
    value = value * 8 + digit
  }
  return value
}

/** Writes a UTF-16 code unit as UTF-8: at most three bytes for the six of `%u0041`. Surrogates become U+FFFD, as with `Buffer.from`. */
function putUtf8(bytes: Buffer, at: number, unit: number): number {
  const code = unit >= 0xd800 && unit <= 0xdfff ? 0xfffd : unit
  if (code < 0x80) {
    bytes[at] = code
    return at + 1
  }
  if (code < 0x800) {
    bytes[at] = 0xc0 | (code >> 6)
    bytes[at + 1] = 0x80 | (code & 0x3f)
    return at + 2
  }
  bytes[at] = 0xe0 | (code >> 12)
  bytes[at + 1] = 0x80 | ((code >> 6) & 0x3f)
  bytes[at + 2] = 0x80 | (code & 0x3f)
  return at + 3
}
