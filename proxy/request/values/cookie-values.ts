import { lenientNames, lenientText } from './lenient-text.ts'

/**
 * The values that a backend may read of a cookie: of several one takes the first, another the last. Backends differ in
 * where a value ends: at the next `;` (RFC 6265), also at a comma or a blank (RFC 2109, Python's `http.cookies`), or at the
 * closing quote, whatever is between.
 *
 * @param header all cookies that were sent, joined with `; `, a character for each byte
 * @param name as the limits table has it
 * @param most the values to look for at most; one more is given where there are more
 * @returns each once, in the form of `lenientText`; none that is empty
 */
export function cookieValues(header: string, name: string, most: number): string[] {
  const values = new Set<string>()
  const [wanted] = lenientNames(name)
  for (let equals = header.indexOf('='); equals !== -1; equals = header.indexOf('=', equals + 1)) {
    const sentName = nameBefore(header, equals)
    if (sentName === undefined || !lenientNames(sentName).includes(wanted)) continue
    for (const sent of endingsOf(header, equals + 1)) {
      const value = lenientText(sent, true)
      if (value !== '') values.add(value)
    }
    if (values.size > most) break
  }
  return [...values]
}

/** Undefined where no backend would take it for the name of a cookie, as in `a=b=c`. */
function nameBefore(header: string, equals: number): string | undefined {
  let end = equals
  while (end > 0 && isBlank(header[end - 1])) end -= 1
  let start = end
  while (start > 0 && !isDelimiter(header[start - 1])) start -= 1
  return start === end || header[start - 1] === '=' ? undefined : header.slice(start, end)
}

/** What may be the value that begins here, with blanks before it. */
function endingsOf(header: string, from: number): string[] {
  let start = from
  while (isBlank(header[start])) start += 1
  const rest = header.slice(start)
  const upToSemicolon = rest.slice(0, indexIn(rest, /;/))
  const upToComma = upToSemicolon.slice(0, indexIn(upToSemicolon, /,/))
  const endings = [upToSemicolon, upToComma, upToComma.slice(0, indexIn(upToComma, /\s/))]
  const quoted = /^"(?:[^"\\]|\\[^])*"/.exec(rest)
  return [...endings, ...(quoted ?? [])].map((ending) => ending.trimEnd())
}

function indexIn(text: string, pattern: RegExp): number {
  const index = text.search(pattern)
  return index === -1 ? text.length : index
}

function isBlank(character: string | undefined): boolean {
  return character !== undefined && /\s/.test(character)
}

function isDelimiter(character: string | undefined): boolean {
  return character === undefined || /[=;,"\s]/.test(character)
}
