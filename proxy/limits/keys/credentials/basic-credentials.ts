import { alphanumerics, createCharacterFilter } from '../../../http/fields/kept-characters.ts'

const encoded = /^[A-Za-z0-9+/]+={0,2}$/
const onlyStandard = createCharacterFilter(`${alphanumerics}+/`)
const onlyStandardOrPadding = createCharacterFilter(`${alphanumerics}+/=`)

/**
 * Returns the users and passwords that backends may read from `Basic` credentials, usually one. Decoders differ in how they treat
 * characters that are not base64: PHP skips them, including `=`; Python and Ruby skip them and stop at the padding, Ruby at the first `=`;
 * Node reads `-` and `_` as `+` and `/`, and stops at `=`.
 *
 * @param text the text after the scheme
 * @returns without duplicates, one character per byte; may include the empty text
 */
export function decodings(text: string): readonly string[] {
  if (encoded.test(text)) return [decode(text)]
  const withPadding = onlyStandardOrPadding(text)
  return [
    ...new Set([
      decode(onlyStandard(text)),
      decode(upToPadding(withPadding, 4)),
      decode(upToPadding(withPadding, 0)),
      decode(text),
    ]),
  ]
}

function decode(text: string): string {
  return Buffer.from(text, 'base64').toString('latin1')
}

/**
 * Returns the text before its padding: the first `=` after two or more characters of a group of four.
 *
 * @param whole minimum length of a group with its padding; padding of a shorter group is skipped
 */
export function upToPadding(text: string, whole: number): string {
  let at = text.indexOf('=')
  if (at === -1) return text
  let kept = text.slice(0, at)
  while (at < text.length) {
    const inGroup = kept.length % 4
    let padding = 0
    for (; text[at] === '='; at++) if (inGroup >= 2 && inGroup + ++padding >= whole) return kept
    const next = text.indexOf('=', at)
    const end = next === -1 ? text.length : next
    kept += text.slice(at, end)
    at = end
  }
  return kept
}

/** Control characters, which neither user names nor passwords contain if they are text. */
const control = /[\0-\x1f\x7f\ufffd]/

/** Whether the text can only be a user and a password, which a random token practically never is. */
export function isPlainText(decoded: string): boolean {
  return decoded.includes(':') && !control.test(Buffer.from(decoded, 'latin1').toString())
}

/**
 * Normalizes a user and a password as lenient backends compare them: the user in any letter case and Unicode form, without blanks around
 * it, and only up to a NUL, where PHP ends the text.
 *
 * @param decoded one character per byte
 */
export function lenientUser(decoded: string): string {
  const nul = decoded.indexOf('\0')
  const text = nul === -1 ? decoded : decoded.slice(0, nul)
  const colon = text.indexOf(':')
  const [user, rest] = colon === -1 ? [text, ''] : [text.slice(0, colon), text.slice(colon)]
  if (/^[a-z0-9._@-]*$/.test(user)) return text
  const utf8 = Buffer.from(user, 'latin1').toString()
  const name = utf8.includes('\ufffd') ? user : utf8
  return Buffer.from(name.normalize('NFKC').toUpperCase().toLowerCase().trim()).toString('latin1') + rest
}
