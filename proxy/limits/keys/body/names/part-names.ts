import { withoutEncodedWords } from '../multipart/part-texts.ts'

/** Maximum number of names to compare with each other for duplicates; most are equal. */
export const FEW_NAMES = 8

/** Maximum characters of names in several pieces, each including the pieces before it. */
const MAX_CONTINUED = 4096
/** Maximum number of readings of the names in one part's head. */
const MAX_NAMES = 256

/** A header with a single name in the usual form, after which no other name can follow. */
const usualHeader =
  /^content-disposition[ \t]*:[ \t]*form-data;[ \t]*name=("?)([\w.[\]-]+)\1(\r\n[^;"'=?\\]*)?$/i

// Used with `exec` one after another, because `matchAll` copies expressions.
// @fastify/busboy drops blanks, quotes and backslashes from the name of a parameter. For Python, some controls are blanks, too.
const nameParameter =
  /n[\s"\\]*a[\s"\\]*m[\s"\\]*e[^\x21\x23-\x5b\x5d-\x7e]*(?:[*\d]+[^\x21\x23-\x5b\x5d-\x7e]*)?=\s*("(?:[^"\\]|\\[^])*"?|[^;]*)/gi
const nameInside = /\bname\s*=\s*("[^"]*"?|[^;\s]*)/gi
// No two blanks are adjacent, because a head full of blanks would take cubic time.
const namePiece =
  /name[^\x21-\x7e]*(\*[^\x21-\x7e]*(?:(\d+)[^\x21-\x7e]*)?(?:\*[^\x21-\x7e]*)?)?=\s*("[^"]*"?|[^;]*)/gi

/** A value without quotes, as Werkzeug ends it (RFC 9110 section 5.6.2): `email/x` is `email`. */
const token = /^[\w!#$%&'*+.^`|~-]*/
/** A value without quotes, as formidable ends it. */
const tokenBeyondAscii = /^[^\s()<>@,;:\\"/[\]?={}]*/
/** A value up to the end of its parameter, unless another one follows without a semicolon. */
const wholeValue = /[^;=\r\n]*(?=[;\r\n]|$)/y

/** The line end before a line that PHP appends to the previous one, because it has no colon or begins with a blank. */
const endBeforeAppended = /\r?\n(?=[ \t\v\f\r]|(?![^\n]*:))/g

/** A line end that h3 drops. */
const loneLineEnd = /(?<!\r)\n/g

/**
 * Returns the names that a `Content-Disposition` may give: with double, single or no quotes, extended (`name*=UTF-8''a`), repeated, and
 * across lines.
 *
 * @returns undefined if there are too many
 */
export function namesIn(header: string): readonly string[] | undefined {
  const headers = new Set([header, header.replace(endBeforeAppended, ''), header.replace(loneLineEnd, '')])
  const names: string[] = []
  for (const one of headers) {
    const found = namesInLines(one)
    if (!found) return undefined
    names.push(...found)
  }
  return names
}

function namesInLines(header: string): readonly string[] | undefined {
  const usual = usualHeader.exec(header)
  if (usual) {
    const [, quote, name = '', rest = ''] = usual
    return quote === '"' || rest === '' ? [name] : [name, (name + rest).trim()]
  }
  const names: string[] = []
  let readings = 0
  const add = (name: string): void => {
    readings++
    if (names.length > FEW_NAMES || !names.includes(name)) names.push(name)
  }
  nameParameter.lastIndex = nameInside.lastIndex = namePiece.lastIndex = 0
  for (let found = nameParameter.exec(header); found; found = nameParameter.exec(header)) {
    const sent = found[1] ?? ''
    const plain = unquoted(sent.trim())
    add(plain)
    add(plain.includes('\\') ? plain.replace(/\\([^])/g, '$1') : plain)
    add(withoutLanguage(plain))
    const word = /[\s;,]/.test(sent) ? (sent.split(/[\s;,]/, 1)[0] ?? '') : sent
    add(word.includes('"') ? word.replaceAll('"', '') : word)
    add(withoutLanguage(word))
    for (const part of tokensOf(sent)) {
      add(part)
      add(withoutLanguage(part))
    }
    // h3 removes all quotes.
    wholeValue.lastIndex = nameParameter.lastIndex - sent.length
    const [whole = ''] = wholeValue.exec(header) ?? []
    if (whole.length > sent.length) add(whole.replaceAll('"', ''))
    if (plain.includes('\r') || plain.includes('\n')) {
      const line = plain.split(/[\r\n]/, 1)[0] ?? ''
      add(line)
      add(withoutLanguage(line))
    }
    if (plain.includes('=?')) add(withoutEncodedWords(plain))
    if (readings > MAX_NAMES) return undefined
  }
  // formidable also finds names in a quoted value of another parameter.
  for (let found = nameInside.exec(header); found; found = nameInside.exec(header)) {
    const sent = found[1] ?? ''
    add(sent.includes('"') ? sent.replaceAll('"', '') : sent)
    // For Rack, a quote after `name=` in a quoted value begins a name.
    if (sent.startsWith('"')) nameInside.lastIndex -= sent.length - 1
    if (readings > MAX_NAMES) return undefined
  }
  if (!header.includes('*')) return names
  const continued = continuedNames(header)
  for (const name of continued ?? []) {
    add(name)
    add(withoutLanguage(name))
  }
  return continued && readings <= MAX_NAMES ? names : undefined
}

/**
 * Returns names in several pieces (RFC 2231 section 3), joined in order of appearance and in order of their numbers. For Werkzeug, a piece
 * without a number begins a new name.
 *
 * @returns undefined if names are too long, or may continue after a semicolon
 */
function continuedNames(header: string): readonly string[] | undefined {
  const pieces: { readonly number: number; readonly text: string }[] = []
  const names: string[] = []
  const tokens: string[] = []
  let length = 0
  for (let found = namePiece.exec(header); found; found = namePiece.exec(header)) {
    const [, star = '', number = '', sent = ''] = found
    const isExtended = /\*[^*\d]*$/.test(star)
    if (isExtended && namePiece.lastIndex < header.length && isCutExtended(sent)) return undefined
    const text = sent.trim().replaceAll('"', '')
    names.push(number === '' ? text : (names.at(-1) ?? '') + text)
    if (number !== '') pieces.push({ number: Number(number), text })
    const [short = ''] = token.exec(text) ?? []
    tokens.push(number === '' ? short : (tokens.at(-1) ?? '') + short)
    length += names.at(-1)?.length ?? 0
    if (length > MAX_CONTINUED) return undefined
  }
  const ordered = pieces.toSorted((a, b) => a.number - b.number)
  return [...names, ordered.map(({ text }) => text).join(''), ...tokens]
}

/**
 * Whether an extended value ends at an invalid semicolon in its charset or language. Werkzeug reads on after it, and Python reads `UTF-8;`
 * as UTF-8: `name*=UTF-8;''email`.
 */
function isCutExtended(sent: string): boolean {
  return sent !== '' && !sent.startsWith('"') && sent.split("'", 3).length < 3
}

/** Returns the beginnings of a value without quotes that some readers take for all of it. */
function tokensOf(sent: string): string[] {
  if (sent.startsWith('"')) return []
  return [token, tokenBeyondAscii].flatMap((pattern) => pattern.exec(sent) ?? [])
}

function unquoted(text: string): string {
  const start = isQuote(text.charCodeAt(0)) ? 1 : 0
  const end = text.length - 1
  return text.slice(start, end >= start && isQuote(text.charCodeAt(end)) ? end : text.length)
}

function isQuote(code: number): boolean {
  return code === 0x22 || code === 0x27
}

/** Returns the text of an extended value, after its charset and optional language. */
function withoutLanguage(text: string): string {
  return text.includes("'") ? text.replace(/^[^']*'(?:[^']*')?/, '') : text
}
