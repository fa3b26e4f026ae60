import type { IncomingHttpHeaders } from 'node:http'
import { withoutBlanksAround, withSpaces } from '../../http/fields/trim-blanks.ts'
import { numberValues } from '../../request/values/number-values.ts'
import { credentialKeys, tokenKeys } from '../keys/credentials/credential-keys.ts'
import { MAX_READINGS } from '../keys/partition-key.ts'
import { isPlainWord } from './plain-words.ts'
import { absent, blank, type Readings } from './readings.ts'
import { bytesOf, type Comparison } from './text-tests.ts'

/** The headers of a request. */
export type HeaderSource = { readonly headers: IncomingHttpHeaders; readonly rawHeaders: readonly string[] }

/**
 * Creates a reader of a header. All conditions on the header share its readings.
 *
 * @param name lower-case
 */
export function createHeaderReader(name: string): (source: HeaderSource) => Readings {
  let lines: readonly string[] | undefined
  let last: Readings = absent
  return ({ headers, rawHeaders }) => {
    if (lines === rawHeaders) return last
    const sent = headers[name]
    if (sent === undefined) return absent
    lines = rawHeaders
    return (last = readHeader(name, typeof sent === 'string' ? sent : sent.join(', '), rawHeaders))
  }
}

function readHeader(name: string, text: string, rawHeaders: readonly string[]): Readings {
  const isBlank = !beginsWithWord(text) && isEmpty.test(withSpaces(text))
  return isBlank ? blank : new HeaderReadings(name, text, rawHeaders)
}

/** Recognizes the usual case without a regular expression. */
function beginsWithWord(text: string): boolean {
  const code = text.charCodeAt(0)
  return (code >= 0x30 && code <= 0x39) || ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a)
}

/**
 * The values that backends may read from a header. The gateway forwards each header that a condition names as one line, and drops headers
 * that some backends confuse with it, such as `X_Api_Key`. If the client sent several lines, a backend may therefore read one of them, or
 * all of them together.
 *
 * - A header with nothing but blanks and punctuation is present to some backends, and absent to others.
 * - Backends may split values at commas and semicolons, and may remove quotes.
 */
class HeaderReadings implements Readings {
  readonly #name: string
  readonly #rawHeaders: readonly string[]
  readonly #text: string
  readonly #trimmed: string
  #lower: string | undefined
  #texts: readonly string[] | undefined
  #possible: readonly string[] | undefined | 'unread' = 'unread'

  constructor(name: string, text: string, rawHeaders: readonly string[]) {
    this.#name = name
    this.#rawHeaders = rawHeaders
    this.#text = text
    this.#trimmed = withoutBlanksAround(text)
  }

  isAbsent(): boolean {
    return false
  }

  isPresent(): boolean {
    return !this.#trimmed.includes(',') || !hasEmptyPiece.test(this.#trimmed)
  }

  likely(isLower: boolean): string {
    return isLower ? this.#lowerCase() : this.#trimmed
  }

  certainly(isSame: (text: string) => boolean): boolean {
    const trimmed = this.#trimmed
    if (this.#text !== trimmed || !isSame(trimmed)) return false
    // A comma may have come from joining several lines.
    return !trimmed.includes(',') || countLines(this.#name, this.#rawHeaders) === 1
  }

  parts(wanted: string): readonly string[] {
    return separator.test(this.#trimmed) ? partsOf(this.#trimmed, wanted.includes(';')) : []
  }

  possible(): readonly string[] | undefined {
    if (this.#possible === 'unread') this.#possible = piecesOf(this.#name, this.#trimmed)
    return this.#possible
  }

  possibleTexts(): readonly string[] | undefined {
    // Credentials can be spelled in other ways than the client did.
    return this.#name === 'authorization' ? this.possible() : this.#foldedTexts()
  }

  lacksWord(word: string): boolean {
    if (this.#trimmed.length > MAX_LENGTH || hasManyPieces(this.#trimmed)) return false
    for (const text of this.#foldedTexts()) if (text.includes(word)) return false
    return true
  }

  #lowerCase(): string {
    return (this.#lower ??= this.#trimmed.toLowerCase())
  }

  /** The values in lower case, with quotes and without. */
  #foldedTexts(): readonly string[] {
    if (this.#texts) return this.#texts
    const folded = withSingleBlanks(this.#lowerCase())
    const hasQuotes = folded.includes('"') || folded.includes("'")
    return (this.#texts = hasQuotes ? [folded, folded.replaceAll(/["']/g, '')] : [folded])
  }
}

/** Returns how a header's values are compared with the texts of the table. */
export function comparisonOfHeader(name: string, ignoresCase: boolean): Comparison {
  return {
    sentAs: bytesOf,
    formsOf: (text) => formsOf(name, text) ?? [folded(text)],
    partOf: folded,
    ignoresCase,
  }
}

const isEmpty = /^[\s",;'\x85\xa0]*$/
/** An empty piece: the first, the last, or one between two commas. */
const hasEmptyPiece = /^[\s"']*,|,[\s"']*(?:,|$)/
const plain = /^[!#-&(-+\--:<-~]*$/
const separator = /[,;]/
/** PHP also ends a content type at a space. */
const separatorOfTypes = /[,; ]/
/** A value above these limits is not split. */
const MAX_LENGTH = 4096
const MAX_PIECES = 32

/** All spellings of a value, in lower case, including those of numbers, UUIDs and tokens. Undefined if there are too many. */
function formsOf(name: string, text: string): readonly string[] | undefined {
  const lower = folded(text)
  if (isPlainWord(lower)) return name === 'authorization' ? [lower, `bearer ${lower}`] : [lower]
  const others = name === 'authorization' ? credentialKeys(text) : tokenKeys(text)
  if (others.length > MAX_READINGS) return undefined
  return [lower, ...others.map((other) => other.toLowerCase()), ...numberValues(lower, false)]
}

function piecesOf(name: string, text: string): readonly string[] | undefined {
  if (plain.test(text)) return formsOf(name, text)
  const ends = name === 'content-type' ? separatorOfTypes : separator
  const pieces = text.length > MAX_LENGTH ? [] : text.split(ends)
  if (pieces.length === 0 || pieces.length > MAX_PIECES) return undefined
  const possible = new Set<string>()
  for (const piece of new Set([text, ...pieces])) {
    const bare = withoutBlanksAround(piece.replaceAll(/["']/g, ''))
    for (const spelling of bare === piece ? [piece] : [piece, bare]) {
      const forms = formsOf(name, spelling)
      if (!forms) return undefined
      for (const form of forms) possible.add(form)
    }
  }
  return [...possible]
}

function hasManyPieces(text: string): boolean {
  return text.length > MAX_PIECES && text.split(separator, MAX_PIECES + 1).length > MAX_PIECES
}

/**
 * Splits a list at its commas. Unless the wanted text has a semicolon, adds the texts between the semicolons of each piece, except
 * parameters such as `q=1`. Returns an empty text, which passes no test, if there are too many pieces.
 */
function partsOf(text: string, hasSemicolons: boolean): readonly string[] {
  const pieces = text.split(',', MAX_PIECES + 1)
  if (pieces.length > MAX_PIECES) return tooManyParts
  if (hasSemicolons) return pieces.map((piece) => piece.trim())
  const parts: string[] = []
  for (const piece of pieces) {
    const [first = '', ...others] = piece.split(';', MAX_PIECES + 1)
    if (others.length >= MAX_PIECES) return tooManyParts
    parts.push(piece.trim(), first.trim())
    for (const other of others) if (!parameterOrBlank.test(other)) parts.push(other.trim())
  }
  return parts
}

const tooManyParts = ['']
const parameterOrBlank = /^\s*(?:[\w!#$%&'*+.^`|~-]+\s*=|$)/

/** Converts a text to lower case, with each run of blanks replaced by one space. */
function folded(text: string): string {
  return withSingleBlanks(text.toLowerCase())
}

function withSingleBlanks(text: string): string {
  const spaced = withSpaces(text)
  return unusualBlanks.test(spaced) ? spaced.replaceAll(/[\t \x85\xa0]+/g, ' ') : spaced
}

const unusualBlanks = /[\t\x85\xa0]| {2}/

function countLines(name: string, rawHeaders: readonly string[]): number {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i] === name) count += 1
  }
  return count
}
