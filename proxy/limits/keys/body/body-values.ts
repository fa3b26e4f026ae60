import { isUtf8 } from 'node:buffer'
import { isBeyondAscii } from '../../../request/values/charsets.ts'
import { queriesOf } from '../../../request/values/query-values.ts'
import { TextCleaner } from './wordpress/cleaned-texts.ts'
import type { BodyFormat } from './body-format.ts'
import { MAX_VALUES, RemainingTexts, type Findings, type FoundValue } from './found-values.ts'
import { readFormValues } from './form-values.ts'
import { readJsonValues } from './json/json-values.ts'
import { readLooseJson } from './json/loose-json.ts'
import { isWideText, wideTextOf } from './json/wide-text.ts'
import { readMultipartValues } from './multipart/multipart-values.ts'
import { dataField, operationsField, type BodyNames } from './names/body-names.ts'
import { UnusualBytes } from './unusual-bytes.ts'
import type { UnreadKey } from '../../../telemetry/telemetry.ts'

/** The part of a request's body that was read, or why none of it was read. */
export type SentBody =
  | { readonly bytes: Buffer; /** Whether this is the whole body. */ readonly isWhole: boolean }
  | { readonly unread: 'missing' | 'memory' }

/** The parts of a request in which backends may find values. */
export type ValueSources = {
  readonly sent: SentBody
  /** The body without its `Content-Encoding`, if it has a known one. */
  readonly unpacked: Buffer | undefined
  readonly format: BodyFormat
  /** The path and query as forwarded. */
  readonly target: string
  /** The cookies of all lines, joined with `; `. */
  readonly cookies: string
}

/**
 * Reads the values that a backend may find at the paths of rules: in the body, both compressed and decompressed, in the format that its
 * `Content-Type` names and in the formats that its bytes may have; in the query, because PHP's `$_REQUEST` and Rack's `params` merge it
 * with the body; and in the cookies, because `$_REQUEST` prefers these to both if there is no `php.ini`, as in PHP's own images.
 *
 * @returns the findings for each name
 */
export function readBodyValues(
  { sent, unpacked, format, target, cookies }: ValueSources,
  names: BodyNames,
): readonly Findings[] {
  // Django also reads the query in this charset.
  const texts = 'bytes' in sent ? [target, sent.bytes, unpacked] : [target]
  const mayBeAnybody =
    format.hasUnknownCharset ||
    (format.hasUtf16 && target.includes('%')) ||
    (format.hasLegacyCharset && texts.some(mayBeBeyondAscii))
  if (mayBeAnybody) return nothingOf(names, 'charset').map((each) => ({ ...each, isCut: true }))
  const others = queriesOf(target).map((query) => readFormValues(query, names))
  // No cookie is a member of a model.
  const inCookies = cookies === '' ? [] : readFormValues(queryOfCookies(cookies), names)
  others.push(inCookies.map((each) => ({ ...each, values: each.values.filter(({ isExtra }) => !isExtra) })))
  if ('unread' in sent) return mergedByName(names, others, sent.unread)
  const { bytes, isWhole } = sent
  const asSent = readBytes(bytes, format, names, isWhole)
  const inside = unpacked ? readBytes(unpacked, { ...format, unread: undefined }, names, isWhole) : []
  // Compression leaves short texts unchanged.
  const found = [...inside, ...asSent.map((each) => inside.reduce(withoutKnown, each))]
  const why = format.unread ?? (isOtherText(bytes) ? 'charset' : undefined)
  return mergedByName(names, [...found, ...others], isWhole ? why : 'size')
}

function mayBeBeyondAscii(text: string | Buffer | undefined): boolean {
  return text !== undefined && isBeyondAscii(text.toString('latin1'))
}

function queryOfCookies(cookies: string): string {
  return cookies.replaceAll('&', '%26').replaceAll(';', '&')
}

/** The findings of a single reading of the body, by name. */
type Read = readonly Findings[]

function readBytes(
  bytes: Buffer,
  { kind, contentType, hasOtherCharset, unread }: BodyFormat,
  names: BodyNames,
  isWhole: boolean,
): Read[] {
  const isOther = isOtherText(bytes)
  // In another charset, or after decompression, quotes and escapes may be at other places.
  const isSound = !isOther && unread !== 'charset' && unread !== 'encoding'
  const found = readAs(kind, { text: bytes.toString('latin1'), contentType, names, isWhole, isSound })
  const wide = wideTextOf(bytes)
  if (wide !== undefined)
    found.push(...readJson({ text: wide, names, isSound: true }, readJsonValues(wide, names, isWhole)))
  const within = found.map((read) => read.map(withoutExcess))
  const isLatin1 = hasOtherCharset || (isOther && unread !== 'encoding')
  return isLatin1 ? withLatin1(within) : within
}

/** Drops the values if there are too many to compare, because the request is refused then. */
function withoutExcess(findings: Findings): Findings {
  return isRefused(findings) || UnusualBytes.hasRoomFor(textsOf(findings))
    ? findings
    : { ...findings, values: [], isCut: true }
}

function isOtherText(bytes: Buffer): boolean {
  return !isUtf8(bytes) || isWideText(bytes)
}

type Reading = {
  readonly text: string
  readonly contentType: string
  readonly names: BodyNames
  readonly isWhole: boolean
  /** Whether every backend reads these bytes as this text. */
  readonly isSound: boolean
}

function readAs(kind: BodyFormat['kind'], reading: Reading): Read[] {
  const { text, contentType, names } = reading
  if (text === '') return [nothingOf(names, 'missing')]
  if (kind === 'json') {
    const valid = readJsonValues(text, names, reading.isWhole)
    const found = readJson(reading, valid)
    // A backend that ignores the type may read it as a form: `{"x":"&email=a&"}`.
    if (text.includes('&') || (text.includes('=') && !looksLikeJson.test(text))) {
      const read = readForm(reading)
      found.push(valid ? read.map(partlyReadIfCut) : read)
    }
    return found
  }
  const found: Read[] = looksLikeJson.test(text)
    ? readJson(reading, readJsonValues(text, names, reading.isWhole)).map((read) =>
        read.map((each) => ({ ...each, unread: each.unread ?? unfit })),
      )
    : []
  // The body need not be multipart even if its type is: Rack then reads it as a form.
  const mayBeForm = kind === 'form' || !text.startsWith('--')
  if (mayBeForm && (text.includes('=') || text.includes(sevenBitEqualsSign))) found.push(readForm(reading))
  if (kind === 'multipart' || (kind === undefined && text.includes('--'))) {
    const fields = readMultipartValues(text, contentType, names)
    found.push(fields, ...readJsonParts(fields, reading))
  }
  return found.length > 0 ? found : [nothingOf(names, undefined)]
}

/**
 * Reads a form, and what formidable finds in it besides, which drops the eighth bit of each byte: `\xe5mail=\xe1nna` is `email=anna`.
 * Browsers escape these bytes.
 */
function readForm({ text, contentType, names }: Reading): Read {
  const usual = readFormValues(text, names)
  if (!urlencoded.test(contentType) || !isBeyondAscii(text)) return usual
  const others = readFormValues(Buffer.from(text, 'latin1').toString('ascii'), names)
  return withoutKnown(others, usual).map((other, name) => {
    const each = usual[name] ?? other
    const values = [...each.values, ...other.values.map((value) => ({ ...value, isExtra: true }))]
    return { ...each, values, isIncomplete: other.isCut }
  })
}

const urlencoded = /urlencoded/i
/** An equals sign with the eighth bit. */
const sevenBitEqualsSign = '\xbd'

/** Reads the GraphQL requests and calls of oRPC in a multipart body as if they were the body, if rules look for their members. */
function readJsonParts(fields: Read, { names, isWhole }: Reading): Read[] {
  const numbers = [operationsField, dataField].flatMap((field) => names.numberOf(field) ?? [])
  const texts = new Set(numbers.flatMap((number) => textsOf(fields[number])))
  // Few texts: a part has several only if parsers differ in where it ends.
  if (texts.size > MAX_JSON_PARTS)
    return [nothingOf(names, undefined).map((each) => ({ ...each, isCut: true }))]
  return Array.from(texts, (text) => readJsonValues(text, names, isWhole) ?? readLooseJson(text, names))
}

/** Maximum texts to read as JSON; each can be as long as the body. */
const MAX_JSON_PARTS = 4

/** Many backends read JSON regardless of the `Content-Type`: Go's decoder, `get_json(force=True)`, `express.json({ type: '*' })`. */
const looksLikeJson = /^(?:\xef\xbb\xbf)?\s*(?:[[{]|\/[*/])/
const unfit: UnreadKey = 'type'

function nothingOf({ count }: BodyNames, unread: UnreadKey | undefined): Read {
  return Array.from({ length: count }, () => ({ values: [], elements: 1, unread, isCut: false }))
}

/** A page in a member of valid JSON, as in a service that sends mail, may look like a form with too many fields. */
function partlyReadIfCut(findings: Findings): Findings {
  return findings.isCut ? { ...findings, isCut: false, isIncomplete: true } : findings
}

/** @param found what a strict parser finds, unless the text is not valid JSON */
function readJson(
  { text, names, isSound }: Pick<Reading, 'text' | 'names' | 'isSound'>,
  found: Read | undefined,
): Read[] {
  if (!found) return [readLooseJson(text, names)]
  if (isSound || found.every(isRefused)) return [found]
  const loose = readLooseJson(text, names)
  const more = withoutKnown(loose, found)
  if (more.every(({ values }) => values.length === 0)) return [found, more]
  // A backend that reads Shift JIS or GBK finds other ends of strings. Members at other depths than the valid ones are not additional
  // requests.
  return [found, withoutKnown(loose, readLooseJson(text, names, 'outside strings'))]
}

function textsOf(findings: Findings | undefined): readonly string[] {
  return findings?.values.map(({ text }) => text) ?? []
}

/** Adds to each value the values that readers of Latin-1 get from its bytes and escapes, as alternatives of the same item. */
function withLatin1(reads: readonly Read[]): Read[] {
  const known = new Map<string, string>()
  return reads.map((read) => read.map((findings) => addLatin1(findings, known)))
}

/** @param known a cache of texts read as Latin-1, because several names have the same texts */
function addLatin1(findings: Findings, known: Map<string, string>): Findings {
  if (isRefused(findings)) return findings
  const values: FoundValue[] = []
  let item = -1
  /** Converted texts of the current item, some of which readers of forms have already added. */
  const converted = new Set<string>()
  for (const value of findings.values) {
    if (value.item !== item) converted.clear()
    item = value.item
    values.push(value)
    if (converted.has(value.text) || !mayBeLatin1.test(value.text)) continue
    const text = known.get(value.text) ?? latin1Of(value.text)
    known.set(value.text, text)
    converted.add(text)
    values.push({ ...value, text })
  }
  return { ...findings, values, isCut: values.length > MAX_VALUES }
}

const mayBeLatin1 = /[\x80-\xff]|%[89a-f]/i

function latin1Of(text: string): string {
  return Buffer.from(text.includes('%') ? unescapedLatin1(text) : text).toString('latin1')
}

/** Whether the findings are already too many, so that the request is refused. */
function isRefused({ isCut, elements }: Findings): boolean {
  return isCut || elements > MAX_VALUES
}

function unescapedLatin1(text: string): string {
  return text.replace(/%([89a-f][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
}

/** Keeps the values of a reading that another reading does not have, or has less often. */
function withoutKnown(read: Read, known: Read): Read {
  return read.map((findings, name) => {
    const remaining = new RemainingTexts(textsOf(known[name]))
    return { ...findings, values: findings.values.filter(({ text }) => !remaining.take(text)) }
  })
}

function mergedByName(
  { count }: BodyNames,
  reads: readonly Read[],
  unread: UnreadKey | undefined,
): Findings[] {
  const cleaner = new TextCleaner()
  return Array.from({ length: count }, (_, name) =>
    merged(
      reads.flatMap((read) => read[name] ?? []).map((findings) => cleaner.withCleaned(findings)),
      unread,
    ),
  )
}

/** Merges several readings. Keeps the first reason for which one is uncertain, and the elements of the longest batch. */
function merged(findings: readonly Findings[], unread: UnreadKey | undefined): Findings {
  const [only] = findings
  if (only && findings.length === 1 && unread === undefined) return only
  const values: FoundValue[] = []
  let items = 0
  for (const found of findings) {
    const first = items
    for (const value of found.values) {
      const item = first + value.item
      items = Math.max(items, item + 1)
      values.push(first === 0 ? value : { ...value, item })
    }
  }
  return {
    values,
    elements: Math.max(1, ...findings.map(({ elements }) => elements)),
    unread: unread ?? findings.find((found) => found.unread)?.unread,
    isCut: countUsual(values) > MAX_VALUES || findings.some(({ isCut }) => isCut),
    isIncomplete: findings.some(({ isIncomplete }) => isIncomplete),
  }
}

function countUsual(values: readonly FoundValue[]): number {
  return values.reduce((count, { isExtra }) => (isExtra ? count : count + 1), 0)
}
