const groupLengths = [8, 4, 4, 4, 12]
/** The lengths of the numbers in `{0x0fc3a1b2,0x0001,0x4002,{0x80,0x03,…}}`. */
const listLengths = [8, 4, 4, 2, 2, 2, 2, 2, 2, 2, 2]

/**
 * Returns a UUID without dashes. Reads all spellings that Python, Java, .NET and PostgreSQL accept: with `urn:uuid:` before it, braces
 * around it, dashes anywhere or nowhere, groups without leading zeros or with a sign or `0x`, and the list of numbers of .NET.
 *
 * @param text of any length, in lower case
 * @returns two UUIDs if Python and Java read different ones; none if the text is not a UUID
 */
export function uuidsOf(text: string): readonly string[] {
  if (!mayBe.test(text)) return none
  if (isUsual.test(text)) return [text.replaceAll('-', '')]
  // In this order, as Python does: it reads `uurn:uid:` as `uuid:`.
  const inner = withoutBraces(text.replaceAll('urn:', '').replaceAll('uuid:', ''))
  if (inner.includes(','))
    return joined(inner.replace(/[\s{}]/g, '').split(',', listLengths.length + 1), listLengths)
  const digits = inner.replaceAll('-', '')
  const found = joined(inner.split('-', groupLengths.length + 1), groupLengths)
  return mayBeAllDigits(digits) ? [...new Set([...joined([digits], [32]), ...found])] : found
}

const none: readonly string[] = []
/** Characters of all spellings. */
const mayBe = /^[\da-fx{}()urni:,+\s_-]{9,}$/
const isUsual = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/

/**
 * Whether Python may read a text as all the digits. Blanks, and a `+` that was decoded as a space, are already removed from texts that
 * Python counts with them: `+fc3…` has one digit less. Without letters, such a text is a number.
 */
function mayBeAllDigits(text: string): boolean {
  return text.length === 32 || (text.length >= 28 && text.length < 32 && /[a-f]/.test(text))
}

/** Drops braces on either side, of which Python accepts any number. */
function withoutBraces(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isBrace(text.charCodeAt(start))) start++
  while (end > start && isBrace(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

function isBrace(code: number): boolean {
  return '{}()'.includes(String.fromCharCode(code))
}

/** Joins numbers of these lengths. Java takes the last digits of longer ones. A `+` may be decoded as a space. */
function joined(numbers: readonly string[], lengths: readonly number[]): readonly string[] {
  if (numbers.length !== lengths.length) return none
  let uuid = ''
  for (const [i, length] of lengths.entries()) {
    const [, digits] = number.exec(numbers[i] ?? '') ?? []
    if (digits === undefined) return none
    uuid += digits.replaceAll('_', '').padStart(length, '0').slice(-length)
  }
  return [uuid]
}

/** Python's `int` ignores underscores. */
const number = /^[+ ]?(?:0x)?([\da-f_]+)$/
