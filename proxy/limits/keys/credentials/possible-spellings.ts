import { findTokens, MAX_TOKENS, type SpelledToken } from '../../../http/fields/json-web-tokens.ts'
import { withSpaces } from '../../../http/fields/trim-blanks.ts'
import { maxReadings } from '../partition-key.ts'
import { decodings, lenientUser } from './basic-credentials.ts'
import { credentialKeys } from './credential-keys.ts'
import { blanks, canonicalCredentials, usualSchemes } from './credentials.ts'

/** Lengths in base64url of the signatures in use: HMAC, ECDSA and EdDSA, and RSA with 2,048 to 4,096 bits. */
const SIGNATURE_LENGTHS = [43, 64, 86, 128, 176, 342, 512, 683]

/** Maximum number of different `Authorization` lines to read. No legitimate request has several. */
const MAX_LINES = maxReadings

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
  const values = lines.length > 1 ? [...different, lines.join(', ')] : different
  const contents = new Set<string>()
  const keys = new Set<string>()
  const read: ReadValue[] = []
  for (const value of values) {
    const one = { value, tokens: findTokens(value), keys: credentialKeys(value) }
    if (one.tokens.length > MAX_TOKENS) return undefined
    for (const { content } of one.tokens) contents.add(content)
    for (const key of one.keys) keys.add(key)
    if (contents.size > MAX_TOKENS || keys.size > maxReadings) return undefined
    read.push(one)
  }
  return Iterator.from(read).flatMap(spellingsOf)
}

type ReadValue = {
  readonly value: string
  readonly tokens: readonly SpelledToken[]
  readonly keys: readonly string[]
}

function* spellingsOf({ value, tokens, keys }: ReadValue): Generator<string> {
  yield canonicalCredentials(value)
  for (const { content, signature } of tokens)
    for (const length of [...SIGNATURE_LENGTHS, signature.length])
      if (length <= signature.length)
        yield* withEachScheme(`${content}.${withoutSpareBits(signature.slice(0, length))}`)
  for (const key of keys) {
    const word = key.slice(key.indexOf(' ') + 1)
    if (key.startsWith('Bearer '))
      for (const spelling of spellingsOfWord(word)) yield* withEachScheme(spelling)
  }
  // The keys have users in lower case; the values decoded here keep their letter case.
  const [, ...words] = withSpaces(value).trim().split(blanks)
  for (const text of new Set([...words.slice(0, maxReadings), words.join(' ')]))
    for (const decoded of decodings(text))
      for (const login of new Set([decoded, lenientUser(decoded), decoded.split('\0', 1)[0] ?? '']))
        yield `Basic ${Buffer.from(login, 'latin1').toString('base64')}`
}

function* withEachScheme(word: string): Generator<string> {
  for (const scheme of usualSchemes) yield `${scheme} ${word}`
}

/** Spells the word in both alphabets of base64, with padding and without. */
function spellingsOfWord(word: string): ReadonlySet<string> {
  const alphabets = [word, word.replaceAll('-', '+').replaceAll('_', '/')]
  return new Set(alphabets.flatMap((text) => [text, text.padEnd(Math.ceil(text.length / 4) * 4, '=')]))
}

function withoutSpareBits(base64Url: string): string {
  return Buffer.from(base64Url, 'base64url').toString('base64url')
}
