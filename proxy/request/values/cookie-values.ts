import { DecodedValues } from './decoded-values.ts'
import { countedNameTest, type NameTest } from './value-names.ts'

/**
 * The values that a backend may read of a cookie: of several one takes the first, another the last. Backends differ in
 * where a value ends: at the next `;` (RFC 6265), also at a comma or a blank (RFC 2109, Python's `http.cookies`), at `&`
 * (CGI.pm), at what no cookie should have in it (WebOb), or at the closing quote, whatever is between. And in where a name
 * begins: `x]sid=1` is a cookie `sid` to WebOb. Starlette reads Latin-1, and ignores U+0085 and U+00A0 around names and values.
 *
 * Takes time in proportion to the length of the header, however often the name is in it: the characters that begin a cookie to a backend
 * also ends one there, so that the values of each way of reading lie one after the other.
 *
 * @param header all cookies that were sent, joined with `; `, a character for each byte
 * @param name as the limits table has it
 * @param maxValues the values to look for at most; one more is given where there are more
 * @param isNumber the backend takes it for a whole number
 * @returns each once, in the form of `valuesOf`; none that is empty
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
    if (isEscaped(header, afterUnusual - 1) && ++escapedNames > maxEscapedNames) values.addUnread()
  }
  return values.toArray()
}

/**
 * The place of the first cookie that some backend takes for the one with this name; undefined if there is none.
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

/** The name before an equals sign: from `start`, and to some from `afterUnusual`. */
function readName(header: string, equals: number, matchesName: NameTest) {
  const end = skipBlanksBack(header, equals)
  const start = startOfName(header, end)
  const afterUnusual = startAfterUnusual(header, end, start)
  // Text after another `=` is not a name, as in `a=b=c`.
  const isName = start < end && header[start - 1] !== '=' && matchesName(header.slice(start, end))
  const isNameAfter = start < afterUnusual && matchesName(header.slice(afterUnusual, end))
  return { start, afterUnusual, isName, isNameAfter }
}

/**
 * Names that begin after a backslash, or after what one escapes. As that ends no value, values of many such names would lie
 * within one another: each further one counts as one more value.
 */
const maxEscapedNames = 4

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
/** A truncated value with neither a letter nor a digit names nobody, such as the `{` of JSON. */
const isName = /[0-9A-Za-z]/

/** U+0085 in Latin-1: around names and values a blank (Python's `strip`), within them as any byte beyond ASCII. */
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

/** The place of the name's last part without unusual characters; `end` if there is no such part. */
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
 * The latest endings of a value for backends to which a cookie begins here: it ends at each of these at the latest, or at a semicolon.
 */
function latestEndings(header: string, start: number): readonly Ending[] {
  const at = skipBlanksBack(header, start)
  const before = at === 0 ? 'semicolon' : endings[header.charCodeAt(at - 1)]
  if (before === 'semicolon') return upTo.semicolon
  const followsBlank = endings[header.charCodeAt(start - 1)] === 'blank'
  if (before === 'comma') return followsBlank ? upTo.commaAndBlank : upTo.comma
  return followsBlank ? upTo.blank : upTo.unusual
}

/** Whether this is a backslash, or what an odd number of them stands before. */
function isEscaped(header: string, at: number): boolean {
  let start = at
  while (start > 0 && header.charCodeAt(start - 1) === backslash) start -= 1
  return header.charCodeAt(at) === backslash || (at - start) % 2 === 1
}

/** Adds what may be the value that begins here: up to the first of each of the characters that end one, and a quoted text. */
function addReadings(values: DecodedValues, header: string, start: number, latest: readonly Ending[]): void {
  const isQuoted = header.charCodeAt(start) === quote
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
    // To WebOb a value goes on after an escape in it.
    if (goesOn && at !== escaped && ending !== 'ampersand') {
      goesOn = false
      const value = header.slice(start, at)
      if (isName.test(value)) addWithoutTrailingBlanks(values, value)
    }
    if (met.has(ending)) continue
    met.add(ending)
    isComplete = ending === 'semicolon' || latest.every((one) => met.has(one))
    const value = header.slice(start, at)
    if (
      latest[0] === ending ||
      endsWhole.has(ending) ||
      (isName.test(value) && !(isQuoted && ending !== 'ampersand'))
    )
      addWithoutTrailingBlanks(values, value)
  }
  if (at >= header.length) addWithoutTrailingBlanks(values, header.slice(start))
  const closing = isQuoted ? endOfQuoted(header, start) : undefined
  if (closing !== undefined) values.add(header.slice(start, closing))
}

function addWithoutTrailingBlanks(values: DecodedValues, value: string): void {
  const end = skipBlanksBack(value, value.length)
  values.add(value.slice(0, end))
  // In UTF-8, these bytes may be the last one of a letter, such as `Å` or `à`.
  if (/[\x85\xa0]/.test(value.slice(end))) values.add(value)
}

/** The place after the closing quote, or after the last escaped one if there is no other (WebOb); undefined without any. */
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
