import { uuidsOf } from './uuid.ts'

/**
 * Returns the values that backends read from a text that may be a number or a UUID, each in one spelling, so that `07` and `7` are the same
 * client.
 *
 * The whole text must be a number: `+7`, `007`, `0_7` (Python, Ruby), `７` (digits of other scripts: Python, Java), `7.0` and `7.5`
 * (converted to an integer), `7e0`, `0x7` (JavaScript), `0d7` (Ruby), `#7` (Spring, ASP.NET), `&h7` (ASP.NET), `1 2` (12 to Spring). `010`
 * is 10, and also 8, for backends that read a leading zero as octal. Only for values known to be numbers is the rest of the text ignored,
 * as by `parseInt`, PHP, Ruby and MySQL: `7x`, `7-title`; or all other characters are dropped, as by PHP's `FILTER_SANITIZE_NUMBER_INT`:
 * `x7`, and 75 for `7,5`. Otherwise all random texts that begin with a 7 would be the same client.
 *
 * @param text decoded and in lower case
 * @param isNumber the backend reads the value as a whole number
 * @returns one or more values; the text itself if it is neither a number nor a UUID
 */
export function numberValues(text: string, isNumber: boolean): readonly string[] {
  if (isPlainNumber.test(text)) return [text]
  const plain = mayBeWritten.test(text) ? withoutBlanksAround(plainDigits(text.normalize('NFKC'))) : text
  const uuids = uuidsOf(plain)
  if (uuids.length > 0) return uuids
  const usual = inUsualForm(plain)
  const values = isNumber ? leadingNumbers(plain) : wholeNumbers(usual)
  if (isNumber && usual !== plain) for (const value of wholeNumbers(usual)) values.add(value)
  if (isNumber) for (const value of leadingNumbers(text.replace(notInNumbers, ''))) values.add(value)
  // For other backends, a number ends where digits of another script begin.
  if (isNumber && plain !== text)
    for (const value of leadingNumbers(withoutBlanksAround(text))) values.add(value)
  return values.size === 0 ? [text] : [...values]
}

/** Characters that PHP's `FILTER_SANITIZE_NUMBER_INT` drops. */
const notInNumbers = /[^\d+-]+/g
const isPlainNumber = /^(?:0|[1-9]\d*)$/
/** Characters that numbers may have besides visible ASCII: blanks that `trim` leaves, and digits of other scripts. */
const mayBeWritten = /[^!-~]/
const signed = /^([+-]?)(\.?\d[^]*)$/
/** The `+` of an exponent may be decoded as a space. */
const decimal = /^([\d_]*)(\.\d*)?(e[+ -]?\d+)?/
const based = /^0(?:x[\da-f_]+|o[0-7_]+|b[01_]+|d[\d_]+)/

/**
 * Replaces spellings of whole numbers in Spring and ASP.NET: without the blanks inside, which Spring drops, and with `0x` for other signs
 * of hexadecimal numbers. ASP.NET accepts `0x` after any of these.
 */
function inUsualForm(text: string): string {
  const joined = mayBeSpaced.test(text) ? text.replace(blanks, '') : text
  return joined.replace(hexadecimal, '$10x')
}

const blanks = /[\s\x1c-\x1f]+/g
const mayBeSpaced = /^[+-]?[\d\s\x1c-\x1f#&][\da-fhx_.\s\x1c-\x1f]*$/
const hexadecimal = /^([+-]?)(?:#|&h|0x)(?:0x)?(?=[\da-f])/

/** Longer numbers are not converted from another base, because no backend has them. */
const MAX_DIGITS = 64

function wholeNumbers(text: string): Set<string> {
  const values = new Set<string>()
  const [, sign = '', body = ''] = signed.exec(text) ?? []
  const [number = '', digits = '', , exponent] = decimal.exec(body) ?? []
  if (number !== '' && number === body)
    addDecimal(values, digits, exponent === undefined ? undefined : number)
  else if (based.exec(body)?.[0] === body) addBased(values, body)
  return withSign(sign, values)
}

/** Reads the number that begins a text. Parsers differ in where it ends: at the first non-digit, or at a character that no number has. */
function leadingNumbers(text: string): Set<string> {
  const values = new Set<string>()
  const [, sign = '', body = ''] = signed.exec(text) ?? []
  if (body === '') return values
  const [number = '', digits = '', , exponent] = decimal.exec(body) ?? []
  addDecimal(values, digits, exponent === undefined ? undefined : number)
  if (isTooLarge(withoutZeros(digits.replaceAll('_', '')))) addLargest(values)
  const underscore = digits.indexOf('_')
  if (underscore !== -1) values.add(withoutZeros(digits.slice(0, underscore)))
  const [prefixed] = based.exec(body) ?? []
  if (prefixed === undefined) return withSign(sign, values)
  addBased(values, prefixed)
  const [first] = /^0.[\da-f]+/.exec(prefixed) ?? []
  if (first !== undefined) addBased(values, first)
  return withSign(sign, values)
}

/** @param float the whole text of the number, if it has an exponent */
function addDecimal(values: Set<string>, digits: string, float: string | undefined): void {
  const plain = digits.replaceAll('_', '')
  const value = withoutZeros(plain)
  values.add(value)
  if (plain.startsWith('0') && /^[1-7][0-7]{1,63}$/.test(value)) values.add(BigInt(`0o${value}`).toString())
  if (float === undefined) return
  const converted = Math.trunc(Number(float.replace(/[ _]/g, '')))
  // PHP reads a number that is too large as 0, as its low 64 bits, or as the largest integer.
  if (Number.isFinite(converted)) values.add(BigInt.asIntN(64, BigInt(converted)).toString())
  else values.add('0')
  if (converted > Number(MAX_INT64)) addLargest(values)
}

/** The maximum of PHP's `intval`, to which larger numbers are clamped. The negative limit is one more. */
const MAX_INT64 = '9223372036854775807'

function addLargest(values: Set<string>): void {
  values.add(MAX_INT64).add((BigInt(MAX_INT64) + 1n).toString())
}

function isTooLarge(digits: string): boolean {
  return digits.length > MAX_INT64.length || (digits.length === MAX_INT64.length && digits > MAX_INT64)
}

function addBased(values: Set<string>, text: string): void {
  const digits = withoutZeros(text.slice(2).replaceAll('_', ''))
  const prefix = text.startsWith('0d') ? '' : text.slice(0, 2)
  if (digits.length <= MAX_DIGITS) values.add(BigInt(prefix + digits).toString())
}

function withoutZeros(digits: string): string {
  return digits.replace(/^0+/, '') || '0'
}

function withSign(sign: string, values: Set<string>): Set<string> {
  return sign === '-' ? new Set(Array.from(values, (value) => (value === '0' ? value : `-${value}`))) : values
}

/** Replaces the digits of all scripts with ASCII digits. In Unicode, they are in runs from 0 to 9. */
export function plainDigits(text: string): string {
  return text.replace(/(?![0-9])\p{Nd}/gu, (digit) => {
    const code = digit.codePointAt(0) ?? 0
    let first = code
    while (isDigit.test(String.fromCodePoint(first - 1))) first -= 1
    return String((code - first) % 10)
  })
}

const isDigit = /\p{Nd}/u

/** Trims the blanks of Python's `int`. */
function withoutBlanksAround(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isBlank(text.charCodeAt(start))) start += 1
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1
  return text.slice(start, end)
}

function isBlank(code: number): boolean {
  return code <= 0x20 || code === 0x85
}
