import { findTokens, MAX_TOKENS } from '../../../http/fields/json-web-tokens.ts'
import { withoutBlanksAround, withSpaces } from '../../../http/fields/trim-blanks.ts'
import { tokenCharacters } from '../../../http/message/token.ts'
import { tooManyValues } from '../partition-key.ts'
import { decodings, isPlainText, lenientUser } from './basic-credentials.ts'
import { comparableWord, comparableWords, usualEncryptedToken } from './comparable-words.ts'
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
const scheme = /^(?:basic|bearer|jwt|token)$/i
const basicScheme = /^[\t \x85\xa0]*basic/i
const endsWithScheme = /(?:bearer|^basic|^jwt|^token)$/i
const LENGTH_OF_BEARER = 'Bearer '.length
/** A word of this length is long enough to be a secret, so that no two clients have the same by chance. */
const secretWord = /^[!-~]{25,}$/
/** Schemes of five letters: a token after them would count as two clients, with its first character and without. */
const shortSchemes = /^(?:basic|oauth|token)$/i
/** Words of a quoted parameter, such as `realm="Basic Auth"`, are shorter. */
const MIN_TOKEN_LENGTH = 16
const punctuation = new Set([',', ';', '"', "'"])

/**
 * Returns the keys of the credentials in `Authorization`: one text for each way in which backends may read them, so a single one for usual
 * credentials. Two values share a text if some backend treats them as the same credentials.
 *
 * - A JSON Web Token counts by its header and payload, at any place in the value, because its signature has countless spellings.
 * - `Basic` counts by user and password, in each way in which a decoder reads them.
 * - A UUID counts in one spelling.
 * - Any other token counts by itself, regardless of the scheme, because many backends take the second word of the field, or the last, or
 *   the whole field without the name of the scheme.
 * - A token with a comma or a semicolon in it also counts by the text before it, where Laravel and Rails cut it off.
 * - Credentials of a scheme with parameters, such as Digest, count as a whole.
 * - With more than `MAX_TOKENS` tokens there are more than `MAX_READINGS` keys, so that the request is rejected. The same applies to a
 *   value longer than `MAX_MIXED_LENGTH` that is not one or two plain words, because each way of reading it takes additional time.
 */
export function credentialKeys(value: string): readonly string[] {
  return [...readCredentials(value).keys]
}

/** The keys of the credentials in `Authorization`, and the words that backends may take as a token, as they were sent. */
type Credentials = { readonly keys: ReadonlySet<string>; readonly words: ReadonlySet<string> }

/** Returns the keys as `credentialKeys` does. If they are too many, the words are incomplete. */
export function readCredentials(value: string): Credentials {
  const found: Found = { keys: new Set(), words: new Set(), hasTokens: false }
  const joined = joinedTexts(value)
  if (joined === undefined) addTooMany(found)
  for (const text of [value, ...(joined ?? [])]) {
    const spaced = withSpaces(text)
    // Base64 decoders skip the bytes of a blank in UTF-8, and read a single word.
    if (spaced !== text) addCredentials(found, spaced)
    addCredentials(found, text)
  }
  // `replace('Basic ', '')` of Java removes the name wherever it occurs; the rest is decoded.
  if (joined && joined.length > 0 && basicScheme.test(value))
    for (const decoded of joined.flatMap((text) => decodings(withoutBlanksAround(text))))
      addUser(found.keys, decoded, true)
  return found
}

/** `hasTokens`: whether the text that is being read has JSON Web Tokens. Otherwise its words have none. */
type Found = { readonly keys: Set<string>; readonly words: Set<string>; hasTokens: boolean }

function addCredentials(found: Found, value: string): void {
  const trimmed = withoutBlanksAround(value)
  if (trimmed === '') return
  const isPlain = plain.test(value)
  if (!isPlain && value.length > MAX_MIXED_LENGTH) return addTooMany(found)
  const words = trimmed.split(isPlain ? ' ' : /[\t \x85\xa0]+/)
  const [first = '', second = ''] = words
  const tokens = findTokens(trimmed)
  // The backend may use a token that was not found.
  if (tokens.length > MAX_TOKENS) return addTooMany(found)
  found.hasTokens = tokens.length > 0
  for (const { content } of tokens) found.keys.add(`Bearer ${content}`)
  const [token] = tokens
  if (token && tokens.length === 1 && isPlain && words.length === 2 && usualToken.test(second))
    if (second.startsWith(token.signed)) return
  if (words.length === 1) for (const piece of withPieces([first])) addWord(found, piece)
  if (!token && !shortSchemes.test(first)) addRest(found, value)
  // A blank that HTTP does not know may come before the only word.
  if (words.length > 1 || value.length > trimmed.length) {
    const isBasic = first.toLowerCase() === 'basic'
    const taken = withPieces(isPlain ? [second] : wordsOf(value, words))
    const texts = [...taken, ...(isPlain ? [] : [words.slice(1).join(' ')])].flatMap(decodings)
    for (const text of texts) addUser(found.keys, text, isBasic)
    if (words.length > 2 && isParameter(second)) addParameters(found, trimmed, words)
    else if (!isPlain) for (const word of taken) if (!scheme.test(word)) addWord(found, word)
    if (isPlain && !texts.every(isPlainText)) addPlain(found, taken, parameterOf(trimmed))
  }
}

function addTooMany({ keys }: Found): void {
  for (const key of tooManyValues) keys.add(key)
}

/** Adds each word with the text before its first comma or semicolon, without empty pieces before it. */
function withPieces(words: Iterable<string>): ReadonlySet<string> {
  const pieces = new Set<string>()
  for (const word of words) pieces.add(word).add(/[^,;]+/.exec(word)?.[0] ?? word)
  return pieces
}

/** Some backends cut off as many characters as `Bearer ` has, whatever they are. */
function addRest(found: Found, value: string): void {
  const rest = value.slice(LENGTH_OF_BEARER)
  if (secretWord.test(rest)) addWord(found, rest)
}

/** @param token the value of the parameter `token` */
function addPlain(found: Found, words: Iterable<string>, token: string | undefined): void {
  if (token !== undefined) addWord(found, token)
  for (const word of words) if (token === undefined || !/^token=/i.test(word)) addWord(found, word)
}

/**
 * Returns the keys of another header with a token or an API key: the header and payload of a JSON Web Token, otherwise the value. A long
 * word counts by its letters and digits only, because decoders skip the other characters, and no two keys of this length differ in those
 * alone.
 */
export function tokenKeys(value: string): readonly string[] {
  const trimmed = withoutBlanksAround(value)
  if (trimmed === '') return []
  const tokens = findTokens(trimmed)
  if (tokens.length > MAX_TOKENS) return tooManyValues
  if (tokens.length === 0) return /[\t ]/.test(trimmed) ? [trimmed] : comparableWords(trimmed)
  const contents = tokens.map(({ content }) => content)
  return [...new Set(/[\t ]/.test(trimmed) ? [...contents, trimmed] : contents)]
}

/** A long value may be a token with an inserted `=`. */
function isParameter(word: string): boolean {
  return parameter.test(word) && (usualParameter.test(word) || comparableWord(word) === word)
}

const none: ReturnType<typeof findTokens> = []

function addWord(found: Found, word: string): void {
  const bare = withoutPunctuationAround(word)
  if (bare === '') return
  found.words.add(bare)
  const encrypted = usualEncryptedToken(bare)
  if (encrypted !== undefined) found.words.add(encrypted)
  const tokens = found.hasTokens ? findTokens(bare) : none
  if (tokens.length > MAX_TOKENS) addTooMany(found)
  for (const { content } of tokens) found.keys.add(`Bearer ${content}`)
  if (tokens.length === 0) for (const one of comparableWords(bare)) found.keys.add(`Bearer ${one}`)
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

function addParameters(found: Found, value: string, words: readonly string[]): void {
  const token = parameterOf(value)
  const last = words.at(-1) ?? ''
  const named = wordsAfterSchemes(words).filter((word) => word.length >= MIN_TOKEN_LENGTH)
  for (const word of withPieces([last, ...named])) if (!isParameter(word)) addWord(found, word)
  if (token !== undefined) addWord(found, token)
  else found.keys.add(canonicalCredentials(value))
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
  for (const word of wordsAfterSchemes(words)) taken.add(word)
  const token = parameterOf(value)
  if (token !== undefined) taken.add(token)
  return taken
}

function lastWord(text: string, blanks: readonly string[]): string {
  return text.slice(1 + Math.max(...blanks.map((blank) => text.lastIndexOf(blank))))
}

/** Returns the words after names of schemes, without those of punctuation alone. Laravel also takes the text after `xBearer `. */
function wordsAfterSchemes(words: readonly string[]): readonly string[] {
  const found = new Set<string>()
  let isNext = false
  for (const word of words) {
    if (found.size > MAX_WORDS) break
    const isEmpty = withoutPunctuationAround(word) === ''
    if (isNext && !isEmpty) found.add(word)
    isNext = endsWithScheme.test(word) || (isNext && isEmpty)
  }
  return [...found]
}

/** With more words than this, the request is rejected in any case. */
const MAX_WORDS = 16
