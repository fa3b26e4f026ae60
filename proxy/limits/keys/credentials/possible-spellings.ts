import { findTokens, MAX_TOKENS } from '../../../http/fields/json-web-tokens.ts'
import { withSpaces } from '../../../http/fields/trim-blanks.ts'
import { maxReadings } from '../partition-key.ts'
import { decodings, lenientUser } from './basic-credentials.ts'
import { credentialKeys } from './credential-keys.ts'
import { blanks, canonicalCredentials, usualSchemes } from './credentials.ts'

/** Characters of the signatures in use, in base64url: HMAC, ECDSA and EdDSA, and RSA with 2,048 to 4,096 bits. */
const SIGNATURE_LENGTHS = [43, 64, 86, 128, 176, 342, 512, 683]

/** Maximum number of different lines of `Authorization` to look into. No legitimate request has several. */
const MAX_LINES = maxReadings

/**
 * The values that some backend may read of the lines of `Authorization`: one of them, or all, as they are joined for the backend.
 * Undefined if somebody has sent more credentials than can be told: some backend may read any of them.
 */
export function authorizationValues(lines: readonly string[]): readonly string[] | undefined {
  const different = [...new Set(lines)]
  if (different.length > MAX_LINES) return undefined
  const values = lines.length > 1 ? [...different, lines.join(', ')] : different
  const tokens = new Set<string>()
  const keys = new Set<string>()
  for (const value of values) {
    const found = findTokens(value)
    if (found.length > MAX_TOKENS) return undefined
    for (const { content } of found) tokens.add(content)
    for (const key of credentialKeys(value)) keys.add(key)
    if (tokens.size > MAX_TOKENS || keys.size > maxReadings) return undefined
  }
  return values
}

/**
 * The usual spellings of all credentials that some backend may read in `Authorization`: what `credentialKeys` counts as one
 * client, written out as a client would send it. A list holds only the hash of that, so each spelling has to be tried, one at a
 * time: together they are a hundred times as long as the value.
 */
export function* possibleSpellings(value: string): Generator<string> {
  yield canonicalCredentials(value)
  for (const { content, signature } of findTokens(value))
    for (const length of [...SIGNATURE_LENGTHS, signature.length])
      if (length <= signature.length)
        yield* withEachScheme(`${content}.${withoutSpareBits(signature.slice(0, length))}`)
  for (const key of credentialKeys(value)) {
    const word = key.slice(key.indexOf(' ') + 1)
    if (key.startsWith('Bearer '))
      for (const spelling of spellingsOfWord(word)) yield* withEachScheme(spelling)
  }
  // The users of these keys are in lower case; the values decoded here keep their case.
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
