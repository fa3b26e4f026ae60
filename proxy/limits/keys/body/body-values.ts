import { isUtf8 } from 'node:buffer'
import { queriesOf } from '../../../request/values/query-values.ts'
import type { BodyFormat } from './body-format.ts'
import { MAX_VALUES, type Findings, type FoundValue } from './found-values.ts'
import { readFormValues } from './form-values.ts'
import { readJsonValues } from './json-values.ts'
import { readLooseJson } from './loose-json.ts'
import { readMultipartValues } from './multipart-values.ts'
import type { UnreadKey } from '../../../telemetry/telemetry.ts'

/** The body of a request as far as it was read, or why there is nothing of it. */
export type SentBody =
  | { readonly bytes: Buffer; /** Nothing follows. */ readonly isWhole: boolean }
  | { readonly unread: 'missing' | 'memory' }

/**
 * The values that a backend may read at a path: of the body, in the format that its `Content-Type` names and in those that its bytes may
 * be in, packed as it is and unpacked; and of the query, with which PHP's `$_REQUEST` and Rack's `params` merge it.
 *
 * @param unpacked without its `Content-Encoding`, if it has one that is known
 * @param path names, one or more
 * @param target path and query as forwarded
 */
export function readBodyValues(
  sent: SentBody,
  unpacked: Buffer | undefined,
  format: BodyFormat,
  target: string,
  path: readonly string[],
): Findings {
  const queries = queriesOf(target).map((query) => readFormValues(query, path))
  if ('unread' in sent) return merged(queries, sent.unread)
  const { bytes, isWhole } = sent
  const asSent = readBytes(bytes, format, path, isWhole)
  const inside = unpacked ? readBytes(unpacked, { ...format, unread: undefined }, path, isWhole) : []
  // Packers leave short texts as they are.
  const found = [...inside, ...asSent.map((each) => inside.reduce(withoutKnown, each))]
  const why = format.unread ?? (isOtherText(bytes) ? 'charset' : undefined)
  return merged([...found, ...queries], isWhole ? why : 'size')
}

function readBytes(
  bytes: Buffer,
  { kind, contentType, hasOtherCharset, unread }: BodyFormat,
  path: readonly string[],
  isWhole: boolean,
): Findings[] {
  const isOther = isOtherText(bytes)
  // In another charset, or unpacked, quotes and escapes may be elsewhere.
  const isSound = !isOther && unread !== 'charset' && unread !== 'encoding'
  const found = readAs(kind, { text: bytes.toString('latin1'), contentType, path, isWhole, isSound })
  const wide = wideTextOf(bytes)
  if (wide !== undefined) found.push(...readJson({ text: wide, contentType, path, isWhole, isSound: true }))
  if (hasOtherCharset || (isOther && (unread ?? 'charset') === 'charset')) found.push(...found.map(inLatin1))
  return found
}

function isOtherText(bytes: Buffer): boolean {
  return !isUtf8(bytes) || isWide(bytes)
}

type Reading = {
  readonly text: string
  readonly contentType: string
  readonly path: readonly string[]
  readonly isWhole: boolean
  /** Its bytes are those of the text. */
  readonly isSound: boolean
}

function readAs(kind: BodyFormat['kind'], reading: Reading): Findings[] {
  const { text, contentType, path } = reading
  if (text === '') return [{ ...nothing, unread: 'missing' }]
  if (kind === 'json') {
    const found = readJson(reading)
    // To whoever ignores the type it is a form: `{"x":"&email=a&"}`.
    if (text.includes('&')) found.push(readFormValues(text, path))
    return found
  }
  const found: Findings[] = looksLikeJson.test(text)
    ? readJson(reading).map((each) => ({ ...each, unread: each.unread ?? unfit }))
    : []
  // A multipart type does not make a body one: Rack reads a form then.
  const mayBeForm = kind === 'form' || !text.startsWith('--')
  if (mayBeForm && text.includes('=')) found.push(readFormValues(text, path))
  if (kind === 'multipart' || (kind === undefined && text.includes('--')))
    found.push(readMultipartValues(text, contentType, path))
  return found.length > 0 ? found : [nothing]
}

/** Many backends read JSON whatever the `Content-Type` says: Go's decoder, `get_json(force=True)`, `express.json({ type: '*' })`. */
const looksLikeJson = /^(?:\xef\xbb\xbf)?\s*(?:[[{]|\/[*/])/
const unfit: UnreadKey = 'type'
const nothing: Findings = { values: [], elements: 1, unread: undefined, isCut: false }

function readJson({ text, path, isWhole, isSound }: Reading): Findings[] {
  const found = readJsonValues(text, path, isWhole)
  if (!found) return [readLooseJson(text, path)]
  return isSound ? [found] : [found, withoutKnown(readLooseJson(text, path), found)]
}

/** The same values to whom the bytes are characters of Latin-1, and their escapes too. */
function inLatin1(findings: Findings): Findings {
  const values = findings.values
    .filter(({ text }) => /[\x80-\xff]|%[89a-f]/i.test(text))
    .map((value) => ({ ...value, text: Buffer.from(unescapedLatin1(value.text)).toString('latin1') }))
  return { ...findings, values }
}

function unescapedLatin1(text: string): string {
  return text.replace(/%([89a-f][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
}

/** What two readings find is there once. */
function withoutKnown(findings: Findings, { values: known }: Findings): Findings {
  const texts = new Set(known.map(({ text }) => text))
  return { ...findings, values: findings.values.filter(({ text }) => !texts.has(text)) }
}

/** Of several readings the reason why the first is not certain, and the elements of the longest batch. */
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
      values.push({ ...value, item })
    }
  }
  return {
    values: values.slice(0, MAX_VALUES),
    elements: Math.max(1, ...findings.map(({ elements }) => elements)),
    unread: unread ?? findings.find((found) => found.unread)?.unread,
    isCut: values.length > MAX_VALUES || findings.some(({ isCut }) => isCut),
  }
}

/** What UTF-16 or UTF-32 says, which Python's `json` detects, as bytes of UTF-8, a character for each; undefined for any other text. */
function wideTextOf(bytes: Buffer): string | undefined {
  if (!isWide(bytes)) return undefined
  const [a, b, c, d] = bytes
  const isBig = a === 0 || a === 0xfe
  const isFour = isBig ? a === 0 && b === 0 : c === 0 && d === 0
  const step = isFour ? 4 : 2
  let text = ''
  for (let at = 0; at + step <= bytes.length; at += step) {
    const code = isBig ? bytes.readUIntBE(at, step) : bytes.readUIntLE(at, step)
    text += code > 0xffff ? String.fromCodePoint(Math.min(code, 0x10_ffff)) : String.fromCharCode(code)
  }
  return Buffer.from(text.replace(/^\ufeff/, '')).toString('latin1')
}

function isWide(bytes: Buffer): boolean {
  const [a, b] = bytes
  return a === 0 || b === 0 || (a === 0xfe && b === 0xff) || (a === 0xff && b === 0xfe)
}
