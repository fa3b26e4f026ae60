import { DecodedValues } from './decoded-values.ts'
import { countedNameTest, type NameTest } from './value-names.ts'

/**
 * Returns the values that a backend may read from a cookie. If it is repeated, some backends take the first value, others the last.
 * Backends also differ in where a value ends: at the next `;` (RFC 6265), at a comma or a blank as well (RFC 2109, Python's
 * `http.cookies`), at `&` (CGI.pm), at a character that no cookie should contain (WebOb), or at the closing quote, regardless of the text
 * between the quotes. And they differ in where a name begins: WebOb reads `x]sid=1` as a cookie `sid`. Starlette reads Latin-1, and ignores
 * U+0085 and U+00A0 around names and values.
 *
 * Takes time in proportion to the length of the header, no matter how often it has the name: for each backend, the characters that begin a
 * cookie also end the one before, so that the values of each way of reading do not overlap.
 *
 * @param header all cookies that were sent, joined with `; `, one character per byte
 * @param name as written in the limits table
 * @param maxValues maximum number of values to find; if there are more, one more is returned
 * @param isNumber the backend reads the value as a whole number
 * @returns without duplicates and empty values, in the form of `valuesOf`
 */
export function cookieValues(header: string, name: string, maxValues: number, isNumber = false): string[] {
  const values = new DecodedValues(maxValues, { isQuoted: true, isNumber })
  const matchesName = countedNameTest(name, () => values.addUnread())
  let escapedNames = 0
  for (
    let equals = header.indexOf('=');
    equals !== -1 && !values.isFull;
    equals = header.indexOf('=', equals + 1)
  ) {
    const { start, afterUnusual, isName, isNameAfter } = readName(header, equals, matchesName)
    if (!isName && !isNameAfter) continue
    values.addPlace()
    const value = skipBlanks(header, equals + 1)
    if (isName) addReadings(values, header, value, latestEndings(header, start))
    if (isNameAfter) addReadings(values, header, value, upTo.unusual)
    if (isEscaped(header, afterUnusual - 1) && ++escapedNames > MAX_ESCAPED_NAMES) values.addUnread()
  }
  return values.toArray()
}

/**
 * Returns the index of the first cookie that some backend reads as the one with this name; undefined if there is none.
 *
 * @param text cookies, or one of them
 */
export function findCookie(text: string, matchesName: NameTest): number | undefined {
  for (let equals = text.indexOf('='); equals !== -1; equals = text.indexOf('=', equals + 1)) {
    const { start, afterUnusual, isName, isNameAfter } = readName(text, equals, matchesName)
    if (isName) return start
    if (isNameAfter) return afterUnusual
  }
  return undefined
}

/** Reads the name before an equals sign. It begins at `start` or, for some backends, at `afterUnusual`. */
function readName(header: string, equals: number, matchesName: NameTest) {
  const end = skipBlanksBack(header, equals)
  const start = startOfName(header, end)
  const afterUnusual = startAfterUnusual(header, end, start)
  // A text after another `=` is not a name, as in `a=b=c`.
  const isName = start < end && header[start - 1] !== '=' && matchesName(header.slice(start, end))
  const isNameAfter = start < afterUnusual && matchesName(header.slice(afterUnusual, end))
  return { start, afterUnusual, isName, isNameAfter }
}

/**
 * Maximum number of names that begin after a backslash or an escaped character. These do not end a value, so the values of many such names
 * would overlap; each further name counts as another value.
 */
const MAX_ESCAPED_NAMES = 4

type Ending = 'semicolon' | 'comma' | 'blank' | 'ampersand' | 'unusual'

/** By character code. */
const endings: readonly (Ending | undefined)[] = Array.from({ length: 256 }, (_, code) => {
  const character = String.fromCharCode(code)
  if (character === ';') return 'semicolon'
  if (character === ',') return 'comma'
  if (character === '&') return 'ampersand'
  if (/\s/.test(character)) return 'blank'
  return /[^!-~]|["[\\\]]/.test(character) ? 'unusual' : undefined
})

/** Endings after a complete value; the others truncate it. */
const endsWhole: ReadonlySet<Ending> = new Set(['semicolon', 'comma', 'blank'])
/** A truncated value without a letter or a digit, such as the `{` of JSON, does not identify a client. */
const isName = /[0-9A-Za-z]/

/** U+0085 in Latin-1: a blank around names and values (Python's `strip`), any other non-ASCII byte within them. */
const nextLine = 0x85
const equalsSign = 0x3d
const quote = 0x22
const backslash = 0x5c

function startOfName(header: string, end: number): number {
  let start = end
  for (; start > 0; start -= 1) {
    const code = header.charCodeAt(start - 1)
    const ending = endings[code]
    if (
      code === equalsSign ||
      code === quote ||
      ending === 'semicolon' ||
      ending === 'comma' ||
      isBlank(code)
    )
      break
  }
  return start
}

/** Returns the start of the name's last part without unusual characters; `end` if there is no such part. */
function startAfterUnusual(header: string, end: number, start: number): number {
  let at = end
  while (at > start && endings[header.charCodeAt(at - 1)] !== 'unusual') at -= 1
  return at
}

const upTo = {
  semicolon: ['semicolon'],
  comma: ['comma'],
  blank: ['blank'],
  commaAndBlank: ['comma', 'blank'],
  unusual: ['unusual'],
} as const satisfies Readonly<Record<string, readonly Ending[]>>

/**
 * Returns the latest endings of a value for backends for which a cookie begins here. The value ends at these at the latest, or at a
 * semicolon.
 */
function latestEndings(header: string, start: number): readonly Ending[] {
  const at = skipBlanksBack(header, start)
  const before = at === 0 ? 'semicolon' : endings[header.charCodeAt(at - 1)]
  if (before === 'semicolon') return upTo.semicolon
  const followsBlank = endings[header.charCodeAt(start - 1)] === 'blank'
  if (before === 'comma') return followsBlank ? upTo.commaAndBlank : upTo.comma
  return followsBlank ? upTo.blank : upTo.unusual
}

/** Whether this is a backslash, or a character after an odd number of backslashes. */
function isEscaped(header: string, at: number): boolean {
  let start = at
  while (start > 0 && header.charCodeAt(start - 1) === backslash) start -= 1
  return header.charCodeAt(at) === backslash || (at - start) % 2 === 1
}

/** Adds the possible values that begin here: up to the first occurrence of each character that may end a value, and the quoted text. */
function addReadings(values: DecodedValues, header: string, start: number, latest: readonly Ending[]): void {
  const isQuoted = header.charCodeAt(start) === quote
  const closing = isQuoted ? endOfQuoted(header, start) : undefined
  // Text with blanks between quotes is read whole, such as `"Bearer …"` (FastAPI). Its first word may be that of all clients.
  const noBlankUntil = closing !== undefined && !isEscaped(header, closing - 1) ? closing : 0
  const met = new Set<Ending>()
  let isComplete = false
  let goesOn = !isQuoted
  let escaped = -1
  let at = isQuoted ? start + 1 : start
  for (; at < header.length && !isComplete; at++) {
    const code = header.charCodeAt(at)
    if (code === backslash) {
      escaped = at + 1
      if (endings[header.charCodeAt(at + 1)] === 'unusual') at += 1
      continue
    }
    const ending = endings[code]
    if (ending === undefined) continue
    // For WebOb, a value continues after an escape.
    if (goesOn && at !== escaped && ending !== 'ampersand') {
      goesOn = false
      const value = header.slice(start, at)
      if (isName.test(value)) addWithoutTrailingBlanks(values, value)
    }
    if (met.has(ending)) continue
    met.add(ending)
    isComplete = ending === 'semicolon' || latest.every((one) => met.has(one))
    if (ending === 'blank' && at < noBlankUntil) continue
    const value = header.slice(start, at)
    if (ending === 'semicolon' && isQuoted) addWithoutEnds(values, value)
    if (
      latest[0] === ending ||
      endsWhole.has(ending) ||
      (isName.test(value) && !(isQuoted && ending !== 'ampersand'))
    )
      addWithoutTrailingBlanks(values, value)
  }
  if (at >= header.length) {
    const value = header.slice(start)
    addWithoutTrailingBlanks(values, value)
    if (isQuoted) addWithoutEnds(values, value)
  }
  if (closing !== undefined) values.add(header.slice(start, closing))
}

function addWithoutTrailingBlanks(values: DecodedValues, value: string): void {
  const end = skipBlanksBack(value, value.length)
  values.add(value.slice(0, end))
  // In UTF-8, these bytes may be the last byte of a letter, such as `Å` or `à`.
  if (/[\x85\xa0]/.test(value.slice(end))) values.add(value)
}

/**
 * Adds a value that begins with a quote without its first and last character. `cookie` before 0.7 (cookie-parser 1.4.6), `cookie-es` 1 (h3,
 * Nuxt) and `cookies` (Koa) remove the last one whatever it is, so that `"ax`, `"ay` and `"a"` are all `a`.
 */
function addWithoutEnds(values: DecodedValues, value: string): void {
  const trimmed = value.slice(0, skipBlanksBack(value, value.length))
  for (const text of new Set([trimmed, value])) if (!text.endsWith('"')) values.add(text.slice(1, -1))
}

/** Returns the index after the closing quote, or after the last escaped quote if there is no other (WebOb); undefined without a quote. */
function endOfQuoted(header: string, start: number): number | undefined {
  let lastEscaped: number | undefined
  for (let at = start + 1; at < header.length; at++) {
    const code = header.charCodeAt(at)
    if (code === quote) return at + 1
    if (code !== backslash) continue
    at += 1
    if (header.charCodeAt(at) === quote) lastEscaped = at + 1
  }
  return lastEscaped
}

function skipBlanks(header: string, from: number): number {
  let at = from
  while (isBlank(header.charCodeAt(at))) at += 1
  return at
}

function skipBlanksBack(header: string, from: number): number {
  let at = from
  while (at > 0 && isBlank(header.charCodeAt(at - 1))) at -= 1
  return at
}

function isBlank(code: number): boolean {
  return code === nextLine || endings[code] === 'blank'
}
