import { alphanumerics, createCharacterFilter } from '../../../http/fields/kept-characters.ts'
import { uuidsOf } from '../../../request/values/uuid.ts'
import { upToPadding } from './basic-credentials.ts'

/** Minimum letters and digits of a word that is identified by them alone. */
const LONG_WORD = 40

const onlySignificant = createCharacterFilter(`${alphanumerics}+/_-`)
const onlySignificantOrPadding = createCharacterFilter(`${alphanumerics}+/_-=`)

/** Returns a UUID in one spelling, and the letters and digits of a long word. */
export function comparableWord(word: string): string {
  const [uuid] = uuidsOf(word.toLowerCase())
  if (uuid !== undefined) return uuid
  const significant = onlySignificant(word)
  return significant.length < LONG_WORD ? word : inBase64Url(significant)
}

/**
 * Returns the spellings by which a word counts, usually one. In Fernet tokens and encrypted JSON Web Tokens, which are base64url by their
 * form, the spare bits of the last character do not count. Python's decoder also ignores the text after the padding.
 */
export function comparableWords(word: string): readonly string[] {
  const uuids = uuidsOf(word.toLowerCase())
  if (uuids.length > 1) return uuids
  const usual = comparableWord(word)
  const isLong = onlySignificant(word).length >= LONG_WORD
  const runs = isEncrypted.test(word) ? word.split('.') : [word]
  if (!isLong || (runs.length === 1 && !usual.startsWith(FERNET))) return [usual]
  const readings = [runs, runs.map((run) => upToPadding(onlySignificantOrPadding(run), 4))]
  return [...new Set(readings.map((each) => each.map(withoutSpareBits).join('')))]
}

/** Version 128 and the first bytes of the time, which are zero until 2106. */
const FERNET = 'gAAAAA'
/** An encrypted JSON Web Token without an encrypted key (RFC 7516 section 7.1). */
const isEncrypted = /^[^.]+\.\.[^.]+\.[^.]+\.[^.]+$/

/** Returns an encrypted JSON Web Token as issuers write it; undefined for another word. */
export function usualEncryptedToken(word: string): string | undefined {
  return isEncrypted.test(word) ? word.split('.').map(withoutSpareBits).join('.') : undefined
}

function withoutSpareBits(run: string): string {
  return Buffer.from(inBase64Url(onlySignificant(run)), 'base64url').toString('base64url')
}

function inBase64Url(text: string): string {
  return text.replaceAll('+', '-').replaceAll('/', '_')
}
