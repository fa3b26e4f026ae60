import { findTokens, MAX_TOKENS, type SpelledToken } from '../../../http/fields/json-web-tokens.ts'
import { withSpaces } from '../../../http/fields/trim-blanks.ts'
import { MAX_READINGS } from '../partition-key.ts'
import { decodings, lenientUser } from './basic-credentials.ts'
import { readCredentials } from './credential-keys.ts'
import { blanks, canonicalCredentials, usualSchemes } from './credentials.ts'
import { joinedTexts, textsWithoutSchemes } from './removed-schemes.ts'

/** Lengths in base64url of the signatures in use: HMAC, ECDSA and EdDSA, and RSA with 2,048 to 4,096 bits. */
const SIGNATURE_LENGTHS = [43, 64, 86, 128, 176, 342, 512, 683]

/** Maximum number of different `Authorization` lines to read. No legitimate request has several. */
const MAX_LINES = MAX_READINGS

/** Maximum number of tokens that differ in their signature or in the text after it. Four tokens in lines of their own have ten. */
const MAX_SIGNATURES = 16

/** Maximum number of different words that backends may take as a token. Eight lines with a token each have eight. */
const MAX_WORDS = 32

/**
 * Returns the usual spellings of all credentials that some backend may read from the lines of `Authorization`: from one line, or from all
 * lines as they are joined for the backend. These are the spellings that `credentialKeys` counts as one client. Lists hold only hashes of
 * credentials, so each spelling has to be tried. They are generated one at a time, because together they are a hundred times as long as the
 * value.
 *
 * @returns undefined if there are too many credentials to enumerate; some backend may read any of them
 */
export function possibleSpellings(lines: readonly string[]): Iterable<string> | undefined {
  const different = [...new Set(lines)]
  if (different.length > MAX_LINES) return undefined
  const sent = lines.length > 1 ? [...different, lines.join(', ')] : different
  const tokens = tokensIn(sent)
  if (tokens === undefined) return undefined
  const values = sent.flatMap((value) => [value, ...(joinedTexts(value) ?? [])])
  const read = sent.map(readCredentials)
  const keys = new Set(read.flatMap((one) => [...one.keys]))
  const words = new Set(read.flatMap((one) => [...one.words]))
  if (keys.size > MAX_READINGS || words.size > MAX_WORDS) return undefined
  return Iterator.from([
    spellingsOfTokens(tokens),
    spellingsOfWords(keys, words),
    ...values.map(spellingsOfValue),
  ]).flatMap((spellings) => spellings)
}

/** Returns the tokens in the values, without duplicates; undefined if there are too many. */
function tokensIn(values: readonly string[]): readonly SpelledToken[] | undefined {
  const contents = new Set<string>()
  const tokens = new Map<string, SpelledToken>()
  const texts = values.map(textsWithoutSchemes)
  if (texts.includes(undefined)) return undefined
  for (const text of [...values, ...texts.flatMap((left) => left ?? [])]) {
    const found = findTokens(text)
    if (found.length > MAX_TOKENS) return undefined
    for (const token of found) {
      contents.add(token.content)
      tokens.set(`${token.content}.${token.signature}`, token)
    }
    if (contents.size > MAX_TOKENS || tokens.size > MAX_SIGNATURES) return undefined
  }
  return [...tokens.values()]
}

function* spellingsOfTokens(tokens: readonly SpelledToken[]): Generator<string> {
  for (const { content, signature } of tokens)
    for (const length of [...SIGNATURE_LENGTHS, signature.length])
      if (length <= signature.length)
        yield* withEachScheme(`${content}.${withoutSpareBits(signature.slice(0, length))}`)
}

/** @param words as sent; the keys lack some of their characters */
function* spellingsOfWords(keys: Iterable<string>, words: ReadonlySet<string>): Generator<string> {
  const spellings = new Set(words)
  for (const key of keys)
    if (key.startsWith('Bearer '))
      for (const spelling of spellingsOfWord(key.slice('Bearer '.length))) spellings.add(spelling)
  for (const spelling of spellings) yield* withEachScheme(spelling)
}

function* spellingsOfValue(value: string): Generator<string> {
  yield canonicalCredentials(value)
  // The keys have users in lower case; the values decoded here keep their letter case.
  const [, ...words] = withSpaces(value).trim().split(blanks)
  for (const text of new Set([...words.slice(0, MAX_READINGS), words.join(' ')]))
    for (const decoded of decodings(text))
      for (const login of new Set([decoded, lenientUser(decoded), decoded.split('\0', 1)[0] ?? '']))
        yield `Basic ${Buffer.from(login, 'latin1').toString('base64')}`
}

function* withEachScheme(word: string): Generator<string> {
  for (const scheme of usualSchemes) yield `${scheme} ${word}`
}

/** Spells a UUID with dashes, too, and the word in both alphabets of base64, with padding and without. */
function spellingsOfWord(word: string): ReadonlySet<string> {
  const withDashes = word.replace(/^(\w{8})(\w{4})(\w{4})(\w{4})(\w{12})$/, '$1-$2-$3-$4-$5')
  const alphabets = [word, withDashes, word.replaceAll('-', '+').replaceAll('_', '/')]
  return new Set(alphabets.flatMap((text) => [text, text.padEnd(Math.ceil(text.length / 4) * 4, '=')]))
}

function withoutSpareBits(base64Url: string): string {
  return Buffer.from(base64Url, 'base64url').toString('base64url')
}
