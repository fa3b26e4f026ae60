import { isUtf8 } from 'node:buffer'
import { withUsualLetters } from '../../../../request/values/comparable/comparable-letters.ts'
import { mailboxAddresses, mayBeSanitized } from '../../../../request/values/mailbox-addresses.ts'
import { NextCharacter } from '../../../../request/values/next-character.ts'
import type { Findings, FoundValue } from '../found-values.ts'
import { withoutTags } from './stripped-tags.ts'

/** Maximum bytes of an account to clean. No account is as long. */
const MAX_TEXT = 2048
/** Maximum different accounts to clean in a body, and their bytes: far more than a request may count for. */
const MAX_TEXTS = 128
const MAX_BYTES = 4 * 1024

/** WordPress cleans the name at a sign-in, and again when it looks the name up: `ad%4%411min` becomes `admin`. */
const ROUNDS = 2

/**
 * Cleans the accounts of one body as WordPress does before it looks them up (`sanitize_user`): removes tags, escapes such as `%41` and
 * entities such as `&x;`, in any number. Also finds the address in a text such as `x <anna@example.com>`.
 */
export class TextCleaner {
  #textsLeft = MAX_TEXTS
  #bytesLeft = MAX_BYTES

  /**
   * Adds to each value the names that WordPress cleans it to, and the e-mail addresses in it.
   *
   * @param findings the values, one character per byte; values of forms with their escapes
   */
  withCleaned(findings: Findings): Findings {
    const { values } = findings
    if (findings.isCut) return findings
    const sent = new Map<string, string>()
    let isIncomplete = findings.isIncomplete ?? false
    for (const value of values) {
      if (sent.has(value.text) || !mayBeUnclean(value)) continue
      if (this.#take(value.text)) sent.set(value.text, textOf(value))
      else isIncomplete = true
      if (this.#isUsedUp) break
    }
    if (sent.size === 0) return isIncomplete ? { ...findings, isIncomplete } : findings
    const hasLegacy =
      sent.values().some((text) => text.search(legacyCharacter) !== -1) && values.some(isLegacy)
    const cleaned = new Map(Array.from(sent, ([text, each]) => [text, cleanedTexts(each, hasLegacy)]))
    const withExtra: FoundValue[] = []
    const addresses = new Map(Array.from(sent, ([text, each]) => [text, mailboxAddresses(each)]))
    for (const value of values) {
      withExtra.push(value)
      const others = [...(cleaned.get(value.text) ?? []), ...(addresses.get(value.text) ?? [])]
      for (const text of others) withExtra.push({ ...value, text, isExtra: true })
    }
    if (addresses.values().some((each) => each === undefined)) isIncomplete = true
    return { ...findings, values: withExtra, isIncomplete }
  }

  get #isUsedUp(): boolean {
    return this.#textsLeft < 0 || this.#bytesLeft < 0
  }

  /** Takes a text from the budget. Returns false if it is too long, or the budget is used up. */
  #take({ length }: string): boolean {
    this.#textsLeft--
    this.#bytesLeft -= length
    return length <= MAX_TEXT && !this.#isUsedUp
  }
}

/** Returns the text after each round, in each language that changes it; empty if nothing is changed. */
function cleanedTexts(sent: string, hasLegacy: boolean): readonly string[] {
  const text = hasLegacy ? inLetters(sent, legacyCharacter, legacy) : sent
  const composed = inNfc(text)
  const starts = languages
    .map(({ characters, letters }) => inLetters(composed, characters, letters))
    .filter((start) => start !== composed)
  const texts = new Set([text, ...starts].flatMap(cleanedByRounds))
  texts.delete(sent)
  return [...texts]
}

function cleanedByRounds(text: string): string[] {
  const rounds = [text]
  for (let round = 0; round < ROUNDS; round++) {
    const before = rounds.at(-1) ?? ''
    if (!mayBeChanged.test(before)) break
    rounds.push(cleanedOnce(before))
  }
  return rounds
}

function mayBeUnclean({ text, isEscaped }: FoundValue): boolean {
  return (isEscaped ? mayBeUncleanEscaped : mayBeUncleanText).test(text) || mayBeSanitized(text)
}

/** Whether a value is not UTF-8. */
function isLegacy(value: FoundValue): boolean {
  return value.text.length <= MAX_TEXT && !isUtf8(Buffer.from(textOf(value), 'latin1'))
}

function textOf({ text, isEscaped }: FoundValue): string {
  return isEscaped ? unescapedOnce(text) : text
}

function unescapedOnce(text: string): string {
  return text
    .replaceAll('+', ' ')
    .replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

const lineFeed = 0x0a
const ampersand = 0x26
const semicolon = 0x3b

const octet = /%[\da-f]{2}/gi
/** The blanks of PCRE, as bytes. */
const blanks = /[\t-\r ]+/g

function cleanedOnce(text: string): string {
  const letters = inHexLetters(inLetters(withoutTags(text), usualCharacter, usual))
  const spaced = withoutEntities(letters.replace(octet, '')).replace(blanks, ' ')
  return spaced.slice(spaced.startsWith(' ') ? 1 : 0, spaced.endsWith(' ') ? -1 : undefined)
}

/** Removes the matches of `/&.+?;/g` in PCRE: from each `&` to the next semicolon in its line that does not follow directly. */
function withoutEntities(text: string): string {
  const ampersands = new NextCharacter(text, ampersand)
  const semicolons = new NextCharacter(text, semicolon)
  const lineFeeds = new NextCharacter(text, lineFeed)
  let kept = ''
  let at = 0
  for (let start = ampersands.from(0); start < text.length;) {
    const end = semicolons.from(start + 2)
    if (end === text.length) break
    const lineEnd = lineFeeds.from(start)
    if (lineEnd < end) {
      start = ampersands.from(lineEnd)
      continue
    }
    kept += text.slice(at, start)
    at = end + 1
    start = ampersands.from(at)
  }
  return kept + text.slice(at)
}

function inLetters(text: string, characters: RegExp, letters: ReadonlyMap<string, string>): string {
  return text.replace(characters, (found) => letters.get(found) ?? found)
}

/** Replaces accented letters that continue an escape, `%é1` with `%e1` and `%æ` with `%ae`: WordPress removes accents before escapes. */
function inHexLetters(text: string): string {
  return text.includes('%') ? inLetters(inNfc(text), hexCharacter, hexLetters) : text
}

function inNfc(text: string): string {
  if (!beyondAscii.test(text)) return text
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) ? Buffer.from(bytes.toString().normalize('NFC')).toString('latin1') : text
}

const beyondAscii = /[\x80-\xff]/

/** Characters, as UTF-8 bytes, that WordPress replaces with other letters than Unicode collations do (`remove_accents`). */
const usual = byBytes({ '£': '', ĸ: 'k', ŉ: 'n', Ŋ: 'n', ŋ: 'n', ɑ: 'a', '€': 'e' })
/** Replacements in names that are not UTF-8: characters of Latin-1 and Windows-1252. */
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
/** Replacements that depend on the language: German, Danish, and Serbian or Bosnian. */
const languages = [
  byBytes({ Ä: 'ae', ä: 'ae', Ö: 'oe', ö: 'oe', Ü: 'ue', ü: 'ue' }),
  byBytes({ Ø: 'oe', ø: 'oe', Å: 'aa', å: 'aa' }),
  byBytes({ Đ: 'dj', đ: 'dj' }),
].map((letters) => ({ letters, characters: anyOf(letters) }))
/** The combining marks of such letters, as bytes. */
const languageMarks = ['\xcc\x88', '\xcc\x8a']
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

/** Latin letters that become hexadecimal digits without their accents. */
const hexLetters: ReadonlyMap<string, string> = new Map(
  [...codesFrom(0xaa, 0x24f), ...codesFrom(0x1e00, 0x1eff)].flatMap((code) => {
    const character = String.fromCodePoint(code)
    const letters = withUsualLetters(character.toLowerCase().normalize('NFKD').replace(/\p{M}/gu, ''))
    const bytes = Buffer.from(character).toString('latin1')
    return /^[a-f]{1,2}$/.test(letters) ? [[bytes, letters] as const] : []
  }),
)
const hexCharacter = anyOf(hexLetters)

function codesFrom(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
}

/** Characters that a round may change. */
const mayBeChanged = new RegExp(`[<&%\\0-\\x20]|${[...usual.keys()].join('|')}`)
/** Texts that cleaning may change, or that `mailboxAddresses` reads an address in. */
const mayBeUncleanText = new RegExp(
  `[<&%"\\\\(;]|@[\\t +]|${[usual, legacy, ...languages.map(({ letters }) => letters)]
    .flatMap((letters) => [...letters.keys()])
    .concat(languageMarks)
    .join('|')}`,
)
/** The same for escaped texts, except for `%40`, because nearly every account has this escape. */
const mayBeUncleanEscaped = new RegExp(
  mayBeUncleanText.source.replace('%', '').replace('|@', '|%(?!40)|(?:@|%40)'),
)
