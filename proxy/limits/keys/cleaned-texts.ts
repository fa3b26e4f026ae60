import { isUtf8 } from 'node:buffer'
import type { Findings, FoundValue } from './body/found-values.ts'

/** Characters of an account that is cleaned, and of all accounts in a body. No account is that long. */
const MAX_TEXT = 2048
const MAX_TEXTS = 16 * 1024

/**
 * What a reader has found, and beside each value the account that WordPress takes it for: without tags, escapes such as `%41` and entities
 * such as `&x;`, which it removes from names before it looks them up (`sanitize_user`), in any number. What PHP takes for a tag is not
 * emulated in all of its forms: a value that may have one has markup.
 *
 * @param findings values with a character for each byte; of forms with their escapes
 */
export function withCleanedTexts(findings: Findings): Findings {
  const { values } = findings
  if (findings.isCut || !values.some(mayBeUnclean)) return findings
  let left = MAX_TEXTS
  const sent = values.map((value) => {
    if (!mayBeUnclean(value)) return undefined
    left -= value.text.length
    return value.text.length > MAX_TEXT || left < 0 ? tooLong : textOf(value)
  })
  const hasLegacy =
    sent.some((text) => text !== undefined && text.search(legacyCharacter) !== -1) && values.some(isLegacy)
  const clean = hasLegacy ? cleanedLegacyText : cleanedText
  return {
    ...findings,
    hasMarkup: sent.some((text) => text?.includes('<')),
    values: values.flatMap((value, i) => {
      const text = sent[i]
      const cleaned = text === undefined ? undefined : clean(text)
      return cleaned === undefined || cleaned === text ? [value] : [value, { ...value, text: cleaned }]
    }),
  }
}

function mayBeUnclean({ text, isEscaped }: FoundValue): boolean {
  return (isEscaped ? mayBeUncleanEscaped : mayBeUncleanText).test(text)
}

/** Whether a value is no UTF-8. */
function isLegacy(value: FoundValue): boolean {
  return value.text.length <= MAX_TEXT && !isUtf8(Buffer.from(textOf(value), 'latin1'))
}

function textOf({ text, isEscaped }: FoundValue): string {
  return isEscaped ? unescapedOnce(text) : text
}

/** In place of a text that is not looked at. */
const tooLong = '<'

function unescapedOnce(text: string): string {
  return text.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

const tag = /<[^>]*>?/g
const octet = /%[\da-f]{2}/gi

function cleanedText(text: string): string {
  return withoutEscapes(text.replace(tag, '').replace(usualCharacter, (found) => usual.get(found) ?? found))
}

/** Of a name that is no UTF-8. */
function cleanedLegacyText(text: string): string {
  return cleanedText(text.replace(legacyCharacter, (found) => legacy.get(found) ?? found))
}

function withoutEscapes(text: string): string {
  return withoutEntities(text.replace(octet, ''))
}

/** From each `&` to the next semicolon that is not just behind it. */
function withoutEntities(text: string): string {
  let kept = ''
  let at = 0
  for (;;) {
    const start = text.indexOf('&', at)
    const end = start === -1 ? -1 : text.indexOf(';', start + 2)
    if (end === -1) return kept + text.slice(at)
    kept += text.slice(at, start)
    at = end + 1
  }
}

/** Characters, as bytes of UTF-8, for which WordPress writes other letters than collations of Unicode do (`remove_accents`). */
const usual = byBytes({ '£': '', ĸ: 'k', ŉ: 'n', Ŋ: 'n', ŋ: 'n', ɑ: 'a', '€': 'e' })
/** Those for which it does so in names that are no UTF-8, in Latin-1 and Windows-1252. */
const legacy = byBytes({
  '\u0080': 'e',
  '\u0083': 'f',
  '\u008a': 's',
  '\u008c': 'oe',
  '\u008e': 'z',
  '\u009a': 's',
  '\u009c': 'oe',
  '\u009e': 'z',
  '\u009f': 'y',
  '¢': 'c',
  '¥': 'y',
  µ: 'u',
  Ð: 'dh',
  ð: 'dh',
})
const usualCharacter = anyOf(usual)
const legacyCharacter = anyOf(legacy)

function byBytes(letters: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(letters).map(([character, usual]) => [Buffer.from(character).toString('latin1'), usual]),
  )
}

function anyOf(table: ReadonlyMap<string, string>): RegExp {
  return new RegExp([...table.keys()].join('|'), 'g')
}
/** The bytes of those characters, too. */
const mayBeUncleanText = new RegExp(`[<&]|%[\\da-f]{2}|${[...usual.keys(), ...legacy.keys()].join('|')}`, 'i')
/** Nearly every account has an escape, `%40`. */
const mayBeUncleanEscaped = new RegExp(mayBeUncleanText.source.replace('%', '%(?!40)'), 'i')
