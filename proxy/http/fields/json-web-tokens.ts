import { alphanumerics, createCharacterFilter, tableOf } from './kept-characters.ts'

/** A JSON Web Token (RFC 7519) in the value of a header, as lenient backends find it there. */
export type SpelledToken = {
  /** The signing input: header and payload with the dot between them, as sent (RFC 7515 section 5.2). */
  readonly signed: string
  /** The signing input in canonical base64url, without other characters. */
  readonly content: string
  /**
   * All base64url characters after the payload, up to the end of the value; they begin with the signature. Most decoders skip characters
   * outside their alphabet, and each stops at a different place.
   */
  readonly signature: string
}

/** How many JSON Web Tokens are looked for in a request. No legitimate request has more. */
export const MAX_TOKENS = 4
/**
 * How many token headers are parsed at most. Each may cause an exception in the JSON parser, which takes 4 µs or more. A value with only
 * one or two tokens needs fewer checks, because a token is found at the first check.
 */
const MAX_CHECKS = 8
/** The length of the largest signature in use: RSA with 16,384 bits, in base64url. */
const MAX_SIGNATURE_LENGTH = 2731

const blank = /\s/
const base64 = `${alphanumerics}+/_-`
const isBase64 = tableOf(base64)
const onlyBase64 = createCharacterFilter(base64)
/** `{` followed by a quote or a blank, in base64: `e`, then `y` or `w`, then one of these. */
const afterY = tableOf('ABCDIJKL')
const afterW = tableOf('klmnopqr0123')

/**
 * Finds JSON Web Tokens anywhere in a value: after any scheme or without one, directly after other characters, before other words, and with
 * characters outside base64 in them. A token is recognized by its header: JSON with an `alg`. Takes time in proportion to the length of the
 * value.
 *
 * @returns at most `MAX_TOKENS` tokens; one more if the value has more, or if too much of it looks like a token
 */
export function findTokens(value: string): readonly SpelledToken[] {
  let dot = value.indexOf('.')
  if (dot === -1) return none
  const found: SpelledToken[] = []
  const search: Search = { checks: 0 }
  let start = 0
  for (let next = dot + 1; next < value.length && found.length <= MAX_TOKENS; next++) {
    if (value.charCodeAt(next) !== DOT) continue
    const token = tokenAt(value, start, dot, next, search)
    if (search.checks > MAX_CHECKS) return tooMany
    if (token) found.push(token)
    start = dot + 1
    dot = next
  }
  return found
}

const DOT = 0x2e
const W = 0x77
const Y = 0x79
const none: readonly SpelledToken[] = []
const tooMany: readonly SpelledToken[] = Array.from({ length: MAX_TOKENS + 1 }, () => ({
  signed: '',
  content: '',
  signature: '',
}))

/** How many token headers have been parsed. */
type Search = { checks: number }

/** @param start the offset after the dot that precedes the token */
function tokenAt(
  value: string,
  start: number,
  dot: number,
  next: number,
  search: Search,
): SpelledToken | undefined {
  // A header is at least `{"alg":""}`.
  if (next === dot + 1 || dot - start < 14) return undefined
  const payload = value.slice(dot + 1, next)
  if (blank.test(payload)) return undefined
  let from = dot
  while (from > start && !isBlank(value.charCodeAt(from - 1))) from--
  const header = headerIn(value.slice(from, dot), search)
  if (header === undefined) return undefined
  return {
    signed: `${header}.${payload}`,
    content: `${recoded(header)}.${recoded(payload)}`,
    signature: base64UrlOf(value, next + 1),
  }
}

/**
 * The part of a word that is the header of a token: all of it, or the part after any other characters. Some backends cut off as many
 * characters as `Bearer ` has, some take the text after the last `bearer`, and Rails skips any number of commas.
 */
function headerIn(word: string, search: Search): string | undefined {
  for (let at = word.indexOf('e'); at !== -1; at = word.indexOf('e', at + 1)) {
    if (!beginsLikeObject(word, at)) continue
    if (++search.checks > MAX_CHECKS) return undefined
    const header = word.slice(at)
    if (hasAlgorithm(header)) return header
  }
  return undefined
}

/** Whether an object begins with the `e` at this offset. Characters outside base64 are skipped. */
function beginsLikeObject(word: string, at: number): boolean {
  const second = nextBase64(word, at + 1)
  const code = word.charCodeAt(second)
  if (code !== Y && code !== W) return false
  return (code === Y ? afterY : afterW)[word.charCodeAt(nextBase64(word, second + 1))] === 1
}

function nextBase64(word: string, from: number): number {
  let at = from
  while (at < word.length && isBase64[word.charCodeAt(at)] !== 1) at++
  return at
}

/** Whether `\s` matches the character. */
function isBlank(code: number): boolean {
  if (code < 0x80) return code === 0x20 || (code >= 0x09 && code <= 0x0d)
  return code === 0xa0 || (code > 0xff && blank.test(String.fromCharCode(code)))
}

function hasAlgorithm(header: string): boolean {
  const bytes = Buffer.from(onlyBase64(header), 'base64')
  if (bytes[0] !== 0x7b) return false
  try {
    const read: unknown = JSON.parse(bytes.toString())
    return typeof read === 'object' && read !== null && 'alg' in read && typeof read.alg === 'string'
  } catch {
    return false
  }
}

function recoded(segment: string): string {
  return Buffer.from(onlyBase64(segment), 'base64').toString('base64url')
}

function base64UrlOf(value: string, from: number): string {
  const rest = value.slice(from, from + 8 * MAX_SIGNATURE_LENGTH)
  return onlyBase64(rest).slice(0, MAX_SIGNATURE_LENGTH).replaceAll('+', '-').replaceAll('/', '_')
}
