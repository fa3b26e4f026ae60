import { DecodedValues } from './decoded-values.ts'
import { lenientNames } from './lenient-text.ts'

/**
 * The values that a backend may read of a cookie: of several one takes the first, another the last. Backends differ in
 * where a value ends: at the next `;` (RFC 6265), also at a comma or a blank (RFC 2109, Python's `http.cookies`), or at the
 * closing quote, whatever is between.
 *
 * Takes time in proportion to the length of the header, however often the name is in it: what begins a cookie to a backend
 * also ends one there, so that the values of each way of reading lie behind one another.
 *
 * @param header all cookies that were sent, joined with `; `, a character for each byte
 * @param name as the limits table has it
 * @param most the values to look for at most; one more is given where there are more
 * @returns each once, in the form of `lenientText`; none that is empty
 */
export function cookieValues(header: string, name: string, most: number): string[] {
  const values = new DecodedValues(most, true)
  const [wanted] = lenientNames(name)
  for (let equals = header.indexOf('='); equals !== -1; equals = header.indexOf('=', equals + 1)) {
    const start = startOfName(header, equals)
    if (start === undefined || !lenientNames(header.slice(start, equals).trimEnd()).includes(wanted)) continue
    addReadings(values, header, skipBlanks(header, equals + 1), latestEnding(header, start))
    if (values.isFull) break
  }
  return values.toArray()
}

/** Undefined where no backend would take it for the name of a cookie, as in `a=b=c`. */
function startOfName(header: string, equals: number): number | undefined {
  let end = equals
  while (end > 0 && isBlank(header.charCodeAt(end - 1))) end -= 1
  let start = end
  while (start > 0 && !beginsName(header.charCodeAt(start - 1))) start -= 1
  return start === end || header[start - 1] === '=' ? undefined : start
}

function beginsName(before: number): boolean {
  return before === 0x3d || endings[before] !== undefined
}

type Ending = 'semicolon' | 'comma' | 'blank' | 'quote'

/** By the code of a character. */
const endings: readonly (Ending | undefined)[] = Array.from({ length: 256 }, (_, code) => {
  if (code === 0x22) return 'quote'
  if (code === 0x2c) return 'comma'
  if (code === 0x3b) return 'semicolon'
  return /\s/.test(String.fromCharCode(code)) ? 'blank' : undefined
})

/** To a backend to which a cookie begins here, a value ends at the next of these at the latest, or at a semicolon. */
function latestEnding(header: string, start: number): Ending {
  let at = start
  while (at > 0 && isBlank(header.charCodeAt(at - 1))) at -= 1
  const before = at === 0 ? 'semicolon' : endings[header.charCodeAt(at - 1)]
  if (before === 'semicolon' || before === 'comma') return before
  return at < start ? 'blank' : 'quote'
}

/** Adds what may be the value that begins here: up to the first of each of the characters that end one, and a quoted text. */
function addReadings(values: DecodedValues, header: string, start: number, latest: Ending): void {
  const met = new Set<Ending>()
  let at = start
  for (; at < header.length && !met.has(latest) && !met.has('semicolon'); at++) {
    const ending = endings[header.charCodeAt(at)]
    if (ending === undefined || met.has(ending) || (ending === 'quote' && at === start)) continue
    met.add(ending)
    if (ending !== 'quote' || latest === 'quote') values.add(header.slice(start, at).trimEnd())
  }
  if (at === header.length) values.add(header.slice(start).trimEnd())
  const quoted = endOfQuoted(header, start)
  if (quoted !== undefined) values.add(header.slice(start, quoted))
}

/** Behind the closing quote; undefined where the text that begins here is not quoted, or not closed. */
function endOfQuoted(header: string, start: number): number | undefined {
  if (header[start] !== '"') return undefined
  for (let at = start + 1; at < header.length; at++) {
    if (header[at] === '"') return at + 1
    if (header[at] === '\\') at += 1
  }
  return undefined
}

function skipBlanks(header: string, from: number): number {
  let at = from
  while (isBlank(header.charCodeAt(at))) at += 1
  return at
}

function isBlank(code: number): boolean {
  return endings[code] === 'blank'
}
