import { linesOf } from '../../../http/message/headers.ts'
import type { ClientRequest } from '../../../http/message/client-request.ts'
import { decodedText } from '../../../request/values/lenient-text.ts'
import { unescapedBytes } from '../../../request/values/unescaped.ts'
import { spellingsOf } from '../../../request/values/comparable/ignored-characters.ts'
import { comparableRareText, comparableTexts } from '../../../request/values/comparable/comparable-text.ts'
import { numberValues } from '../../../request/values/number-values.ts'
import { bodyFormatOf } from './body-format.ts'
import { readBodyValues, type SentBody, type ValueSources } from './body-values.ts'
import type { Findings, FoundValue } from './found-values.ts'
import { isPlainText, readPartOf, UnusualBytes } from './unusual-bytes.ts'
import { operationsField, type BodyNames, type BodyPart } from './names/body-names.ts'
import { referencesTo } from './names/references.ts'
import { tooManyValues } from '../partition-key.ts'
import { mayBePacked, unpack } from './unpacked.ts'

/** A value that is only read in part is ambiguous if it has fewer significant characters than this, because databases ignore the others. */
const MIN_CHARACTERS = 64

/** The body of a request, for rules that count by it. It is read once for all names of all rules. */
export class KeyBody {
  readonly #sources: ValueSources
  readonly #isArray: boolean
  /** Whether the arguments of a server action refer to each other, so that a value may be anywhere in the body. */
  readonly #hasReferences: boolean
  /** Whether the body has an unknown coding. It is then read as sent, and also counts by address. */
  readonly #hasUnknownCoding: boolean
  readonly #names: BodyNames
  #findings: readonly Findings[] | undefined
  readonly #readings = new Map<string, Readings>()
  readonly #usualBudget = new UnusualBytes()
  /** Separate, so that values that few backends read do not use up the budget of the usual readings. */
  readonly #extraBudget = new UnusualBytes()

  /**
   * @param target the path and query as forwarded
   * @param names the names that are asked for
   */
  constructor(
    sent: SentBody,
    { rawHeaders }: Pick<ClientRequest, 'rawHeaders'>,
    target: string,
    names: BodyNames,
  ) {
    this.#names = names
    const stated = bodyFormatOf(rawHeaders)
    this.#hasUnknownCoding = stated.codings.length > 0 && !mayBePacked(stated.codings)
    const format = this.#hasUnknownCoding ? bodyFormatOf(withoutCodings(rawHeaders)) : stated
    const unpacked = 'bytes' in sent ? unpack(sent.bytes, format.codings) : undefined
    const cookies = linesOf(rawHeaders, 'cookie').join('; ')
    this.#sources = { sent, unpacked, format, target, cookies }
    this.#hasReferences =
      'bytes' in sent &&
      linesOf(rawHeaders, 'next-action').length > 0 &&
      reference.test(sent.bytes.toString('latin1'))
    this.#isArray = beginsArray(unpacked) || ('bytes' in sent && beginsArray(sent.bytes))
  }

  /**
   * Whether a backend may read the body, or a part of it, as a JSON array, the requests of a batch, of which there may be only one.
   */
  get isBatch(): boolean {
    return (
      this.#isArray ||
      this.find(operationsField).values.some(({ text }) => beginsArray(Buffer.from(text, 'latin1')))
    )
  }

  /**
   * Whether the body may have further values, such as other accounts: after the bytes that are read, or in a coding that was not decoded.
   */
  get isPartlyRead(): boolean {
    const { sent, unpacked, format } = this.#sources
    if ('unread' in sent) return false
    return !sent.isWhole || (format.codings.length > 0 && unpacked === undefined)
  }

  find(part: BodyPart): Findings {
    this.#findings ??= readBodyValues(this.#sources, this.#names)
    const findings = this.#findings[this.#names.numberOf(part) ?? -1] ?? nothing
    if (this.#hasReferences || this.#isReplaced(part)) return { ...findings, isCut: true }
    return this.#hasUnknownCoding ? { ...findings, unread: findings.unread ?? 'encoding' } : findings
  }

  /** Whether superjson or oRPC may take another place of the body for the part, so that its value may be anywhere. */
  #isReplaced(part: BodyPart): boolean {
    const references = referencesTo(part)
    if (!references) return false
    return references.fields.some((field) => {
      const { values, isCut } = this.#findings?.[this.#names.numberOf(field) ?? -1] ?? nothing
      const places = values.map(({ text }) => text).join('.')
      return isCut || references.pattern.test(Buffer.from(places, 'latin1').toString())
    })
  }

  /** Returns the non-empty readings of a text. If the text is read in part and ambiguous, returns more than `MAX_READINGS` usual ones. */
  readingsOf({ text: sent, isExtra }: Pick<FoundValue, 'text' | 'isExtra'>, part: BodyPart): Readings {
    const isNumber = part.isNumber ?? false
    const text = readPartOf(sent)
    const readings = this.#readOnce(text, isNumber, isExtra)
    // The name of any account may follow after thousands of characters that databases ignore.
    return text !== sent && readings.usual.every(({ length }) => length < MIN_CHARACTERS) ? tooMany : readings
  }

  #readOnce(text: string, isNumber: boolean, isExtra = false): Readings {
    const id = isNumber ? `${text} as integer` : text
    const known = this.#readings.get(id)
    if (known) return known
    const budget = isExtra ? this.#extraBudget : this.#usualBudget
    const readings = isPlainText(text) || budget.take(text.length) ? bodyReadings(text, isNumber) : tooMany
    // NFKD expands some characters: U+FDFA to 18.
    for (const { length } of readings.usual) budget.add(Math.max(0, length - text.length))
    this.#readings.set(id, readings)
    return readings
  }

  /**
   * Counts the matches of a pattern in the body, the query and the cookies, with escapes decoded and in lower case.
   *
   * @param pattern must have the flag `g`
   */
  countMentions(pattern: RegExp): number {
    const { sent, unpacked, target, cookies } = this.#sources
    const bytes = 'bytes' in sent ? sent.bytes : undefined
    const texts = [bytes?.toString('latin1'), unpacked?.toString('latin1'), target, cookies]
    return texts.reduce((count, text = '') => count + (withoutEscapes(text).match(pattern)?.length ?? 0), 0)
  }

  /** Returns the values of a part without duplicates, for explanations. */
  readPart(part: BodyPart): readonly string[] {
    const readings = this.find(part).values.map((value) => this.readingsOf(value, part))
    return [...new Set(readings.flatMap(({ usual, extra }) => [...usual, ...extra]))]
  }
}

/** A string in JSON that React reads as another place of the arguments, such as `"$0:0:x"`. It writes `"$$5"` for `$5`. */
const reference = /"(?:\$|\\u0024)(?:[\da-f]|\\u00[36])/

/** 1 for each byte of blanks, and of what UTF-16 and byte order marks have before the first character. */
const comesBeforeText = new Uint8Array(256)
for (const byte of Buffer.from('\t\n\v\f\r \0\xef\xbb\xbf\xfe\xff', 'latin1')) comesBeforeText[byte] = 1
const openingBracket = 0x5b

function beginsArray(bytes: Buffer | undefined): boolean {
  if (!bytes) return false
  let at = 0
  while (comesBeforeText[bytes[at] ?? openingBracket]) at++
  return bytes[at] === openingBracket
}

/** Decodes the escapes of URLs and JSON, and drops the NULs that ASCII has in UTF-16. */
function withoutEscapes(text: string): string {
  const decoded = unescapedBytes(text.replaceAll('\0', ''), false).toString('latin1')
  return decoded
    .replace(/\\u00([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .toLowerCase()
}

function withoutCodings(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, i) => rawHeaders[i - (i % 2)] !== 'content-encoding')
}

const nothing: Findings = { values: [], elements: 1, unread: 'missing', isCut: false }

/** The readings of a text: `usual` by most backends, `extra` by few. */
export type Readings = { readonly usual: readonly string[]; readonly extra: readonly string[] }

const tooMany: Readings = { usual: tooManyValues, extra: [] }

/**
 * Returns the values that a text of a body may stand for, in the spelling that they count by, which is the same in JSON and in forms.
 *
 * @param sent one character per byte
 */
function bodyReadings(sent: string, isNumber: boolean): Readings {
  const usual = new Set<string>()
  const extra = new Set<string>()
  for (const spelling of spellingsOf(sent)) {
    const decoded = decodedText(spelling, false)
    for (const text of comparableTexts(decoded))
      for (const value of numberValues(text, isNumber)) usual.add(value)
    const rare = comparableRareText(decoded)
    if (rare !== undefined) extra.add(rare)
  }
  for (const value of ['', ...usual]) extra.delete(value)
  usual.delete('')
  return { usual: [...usual], extra: [...extra] }
}

/** Returns the readings, the usual ones first. */
export function bodyValues(sent: string, isNumber: boolean): readonly string[] {
  const { usual, extra } = bodyReadings(sent, isNumber)
  return [...usual, ...extra]
}
