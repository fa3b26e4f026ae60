import { findTokens, MAX_TOKENS } from '../../../http/fields/json-web-tokens.ts'
import { alphanumerics, createCharacterFilter } from '../../../http/fields/kept-characters.ts'
import { withoutBlanksAround, withSpaces } from '../../../http/fields/trim-blanks.ts'
import { tokenCharacters } from '../../../http/message/token.ts'
import { tooManyValues } from '../partition-key.ts'
import { decodings, isPlainText, lenientUser } from './basic-credentials.ts'
import { canonicalCredentials, tokenParameter } from './credentials.ts'
import { joinedTexts } from './removed-schemes.ts'

/**
 * The blanks at which backends split the field into words. Only tab and space are blanks in HTTP; JavaScript's `\s` includes U+00A0, and
 * Python's `str` also U+0085.
 */
const splitters = [
  createSplitter('\t \x85\xa0', '+'),
  createSplitter(' ', ''),
  createSplitter('\t ', '+'),
  createSplitter('\t \xa0', '+'),
]

/** Finds two words of a value without splitting all of it, because there may be thousands of words. */
type Splitter = { readonly second: RegExp; readonly blanks: readonly string[] }

/** @param run `+` if consecutive blanks count as one */
function createSplitter(blanks: string, run: '+' | ''): Splitter {
  return { second: new RegExp(`^[^${blanks}]*[${blanks}]${run}([^${blanks}]*)`), blanks: Array.from(blanks) }
}

/** Long credentials, such as Kerberos tickets, are a single word after the scheme. */
const MAX_MIXED_LENGTH = 4096
const plain = /^[!-~]+(?: [!-~]+)?$/
const parameter = new RegExp(`^[${tokenCharacters}]+=(?!=*$)`)
/** Parameters of Digest, OAuth 1, Hawk, HTTP signatures and AWS. */
const usualParameter =
  /^(?:algorithm|app|charset|cnonce|created|credential|dlg|expires|ext|hash|headers|id|keyid|mac|nc|nonce|oauth_\w+|opaque|qop|realm|response|signature|signedheaders|ts|uri|userhash|username)=/i
/** A JSON Web Token in the usual form of issuers. */
const usualToken = /^[\w-]+\.[\w-]+\.[\w-]*$/
const schemes = new Set(['basic', 'bearer', 'jwt', 'token'])
const MAX_SCHEME_LENGTH = 6
const punctuation = new Set([',', ';', '"', "'"])

/**
 * Returns the keys of the credentials in `Authorization`: one text for each way in which backends may read them, so a single one for usual
 * credentials. Two values share a text if some backend treats them as the same credentials.
 *
 * - A JSON Web Token counts by its header and payload, at any place in the value, because its signature has countless spellings.
 * - `Basic` counts by user and password, in each way in which a decoder reads them.
 * - Any other token counts by itself, regardless of the scheme, because many backends take the second word of the field, or the last, or
 *   the whole field without the name of the scheme.
 * - Credentials of a scheme with parameters, such as Digest, count as a whole.
 * - With more than `MAX_TOKENS` tokens there are more than `maxReadings` keys, so that the request is rejected. The same applies to a value
 *   longer than `MAX_MIXED_LENGTH` that is not one or two plain words, because each way of reading it takes additional time.
 */
export function credentialKeys(value: string): readonly string[] {
  const joined = joinedTexts(value)
  return joined.length === 0 ? keysOfText(value) : [...new Set([value, ...joined].flatMap(keysOfText))]
}

function keysOfText(value: string): readonly string[] {
  const spaced = withSpaces(value)
  const keys = keysOf(value)
  // Base64 decoders skip the bytes of a blank in UTF-8, and read a single word.
  return spaced === value ? keys : [...new Set([...keysOf(spaced), ...keys])]
}

function keysOf(value: string): readonly string[] {
  const trimmed = withoutBlanksAround(value)
  if (trimmed === '') return none
  const isPlain = plain.test(value)
  if (!isPlain && value.length > MAX_MIXED_LENGTH) return tooManyValues
  const words = trimmed.split(isPlain ? ' ' : /[\t \x85\xa0]+/)
  const [scheme = '', second = ''] = words
  const tokens = findTokens(trimmed)
  // The backend may use a token that was not found.
  if (tokens.length > MAX_TOKENS) return tooManyValues
  const keys = new Set(tokens.map(({ content }) => `Bearer ${content}`))
  const [token] = tokens
  if (token && tokens.length === 1 && isPlain && words.length === 2 && usualToken.test(second))
    if (second.startsWith(token.signed)) return [...keys]
  if (words.length === 1) addWord(keys, scheme)
  // A blank that HTTP does not know may come before the only word.
  if (words.length > 1 || value.length > trimmed.length) {
    const isBasic = scheme.toLowerCase() === 'basic'
    const taken = isPlain ? new Set([second]) : wordsOf(value, words)
    const texts = [...taken, ...(isPlain ? [] : [words.slice(1).join(' ')])].flatMap(decodings)
    for (const text of texts) addUser(keys, text, isBasic)
    if (words.length > 2 && isParameter(second)) addParameters(keys, trimmed, words.at(-1) ?? '')
    else if (!isPlain) for (const word of taken) addWord(keys, word)
    else if (!texts.every(isPlainText)) addWord(keys, parameterOf(trimmed) ?? second)
  }
  return [...keys]
}

const none: readonly string[] = []

/**
 * Returns the keys of another header with a token or an API key: the header and payload of a JSON Web Token, otherwise the value. A long
 * word counts by its letters and digits only, because decoders skip the other characters, and no two keys of this length differ in those
 * alone.
 */
export function tokenKeys(value: string): readonly string[] {
  const trimmed = withoutBlanksAround(value)
  if (trimmed === '') return none
  const tokens = findTokens(trimmed)
  if (tokens.length > MAX_TOKENS) return tooManyValues
  if (tokens.length === 0) return [/[\t ]/.test(trimmed) ? trimmed : comparableWord(trimmed)]
  const contents = tokens.map(({ content }) => content)
  return [...new Set(/[\t ]/.test(trimmed) ? [...contents, trimmed] : contents)]
}

/** Minimum letters and digits of a word that is identified by them alone. */
const LONG_WORD = 40

const onlySignificant = createCharacterFilter(`${alphanumerics}+/_-`)

function comparableWord(word: string): string {
  const significant = onlySignificant(word)
  if (significant.length < LONG_WORD) return word
  return significant.replaceAll('+', '-').replaceAll('/', '_')
}

/** A long value may be a token with an inserted `=`. */
function isParameter(word: string): boolean {
  return parameter.test(word) && (usualParameter.test(word) || comparableWord(word) === word)
}

function addWord(keys: Set<string>, word: string): void {
  const bare = withoutPunctuationAround(word)
  if (bare === '') return
  const tokens = findTokens(bare)
  if (tokens.length > MAX_TOKENS) for (const key of tooManyValues) keys.add(key)
  for (const { content } of tokens) keys.add(`Bearer ${content}`)
  if (tokens.length === 0) keys.add(`Bearer ${comparableWord(bare)}`)
}

/** Trims punctuation without a regular expression, which would restart at each trailing character. */
function withoutPunctuationAround(word: string): string {
  let start = 0
  let end = word.length
  while (start < end && punctuation.has(word.charAt(start))) start++
  while (end > start && punctuation.has(word.charAt(end - 1))) end--
  return word.slice(start, end)
}

function addUser(keys: Set<string>, decoded: string, isBasic: boolean): void {
  if (decoded === '' || (!isBasic && !isPlainText(decoded))) return
  keys.add(`Basic ${Buffer.from(lenientUser(decoded), 'latin1').toString('base64')}`)
}

function addParameters(keys: Set<string>, value: string, last: string): void {
  const token = parameterOf(value)
  if (!isParameter(last)) addWord(keys, last)
  if (token !== undefined) addWord(keys, token)
  else keys.add(canonicalCredentials(value))
}

/** Rails reads `Token token="…", nonce="…"`, and also accepts `Bearer`. */
function parameterOf(value: string): string | undefined {
  return /^(?:token|bearer)[\t \x85\xa0]/i.test(value) ? tokenParameter.exec(value)?.[1] : undefined
}

/** Returns each word that some backend takes as the token. `value` is as sent. */
function wordsOf(value: string, words: readonly string[]): ReadonlySet<string> {
  const taken = new Set<string>()
  // Python's `split` returns no empty word for leading blanks.
  const texts = new Set([value, withoutBlanksAround(value)])
  for (const { second, blanks } of splitters)
    for (const text of texts) taken.add(second.exec(text)?.[1] ?? '').add(lastWord(text, blanks))
  for (let i = 1; i < words.length && taken.size <= MAX_WORDS; i++)
    if (isScheme(words[i - 1] ?? '')) taken.add(words[i] ?? '')
  const token = parameterOf(value)
  if (token !== undefined) taken.add(token)
  return taken
}

function lastWord(text: string, blanks: readonly string[]): string {
  return text.slice(1 + Math.max(...blanks.map((blank) => text.lastIndexOf(blank))))
}

function isScheme(word: string): boolean {
  return word.length <= MAX_SCHEME_LENGTH && schemes.has(word.toLowerCase())
}

/** With more words than this, the request is rejected in any case. */
const MAX_WORDS = 16
