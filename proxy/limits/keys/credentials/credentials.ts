import { withoutBlanksAround, withSpaces } from '../../../http/fields/trim-blanks.ts'
import { tokenCharacters } from '../../../http/message/token.ts'

/** The usual spelling of authentication schemes, by lower-case name: schemes of IANA's registry, and others in use. */
const usualSpellings = new Map(
  [
    'AWS4-HMAC-SHA256',
    'ApiKey',
    'DPoP',
    'GNAP',
    'HOBA',
    'JWT',
    'NTLM',
    'OAuth',
    'PrivateToken',
    'SCRAM-SHA-1',
    'SCRAM-SHA-256',
    'vapid',
  ].map((scheme) => [scheme.toLowerCase(), scheme]),
)

/** The schemes with which a token may be sent. */
export const usualSchemes: readonly string[] = ['Bearer', 'Token', 'Basic', ...usualSpellings.values()]

/**
 * Blanks, including characters that requests must not contain but some programs treat as blanks: Python's `str` does so with U+0085 and
 * U+00A0.
 */
export const blanks = /[\t \x85\xa0]+/
const schemeSyntax = new RegExp(String.raw`^([${tokenCharacters}]+)[\t \x85\xa0]+([^\t \x85\xa0][^]*)`)
const token68 = /^[A-Za-z0-9\-._~+/]+=*$/
const oneWordSchemes = new Set(['basic', 'bearer', 'token'])
/** Rails reads `Token token="…", nonce="…"`, and also accepts `Bearer`. */
export const tokenParameter = /(?:^|[\t ,;])token="?([^\t ",;]+)/i
const jsonWebToken = /^([\w-]+\.[\w-]+\.)([\w+/-]+)=*$/

/**
 * Normalizes the value of `Authorization`, so that different spellings of the same credentials count as one client. The result is never
 * forwarded.
 *
 * The scheme is case-insensitive, and any number of blanks may follow it (RFC 9110 section 11.4). A token is one word: many backends take
 * the second word of the field and ignore the rest. Most decoders ignore the spare bits in the last character of base64 and its padding,
 * and accept its second alphabet.
 *
 * The usual spelling is returned unchanged, so that counters keep their keys. Several lines must have been joined with `, `. A value that
 * is not of the form `scheme credentials` is only trimmed.
 */
export function canonicalCredentials(value: string): string {
  const trimmed = withoutBlanksAround(withSpaces(value))
  const [, scheme, rest] = schemeSyntax.exec(trimmed) ?? []
  if (scheme === undefined || rest === undefined) return trimmed
  const lowerCase = scheme.toLowerCase()
  return `${usualSpellings.get(lowerCase) ?? capitalized(lowerCase)} ${canonicalRest(lowerCase, rest)}`
}

function canonicalRest(scheme: string, rest: string): string {
  const [first = '', ...others] = rest.split(blanks)
  const isOneWord = oneWordSchemes.has(scheme)
  const [, parameter] = isOneWord ? (tokenParameter.exec(rest) ?? []) : []
  const word = parameter ?? (isOneWord || token68.test(first) ? first : undefined)
  if (word === undefined) return [first, ...others].join(' ')
  if (scheme === 'basic') return Buffer.from(word, 'base64').toString('base64') || word
  const [, signed, signature = ''] = jsonWebToken.exec(word) ?? []
  return signed === undefined ? word : signed + Buffer.from(signature, 'base64url').toString('base64url')
}

function capitalized(scheme: string): string {
  return scheme.charAt(0).toUpperCase() + scheme.slice(1)
}
