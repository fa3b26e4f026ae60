import type { IncomingHttpHeaders } from 'node:http'
import { numberValues } from '../../request/values/number-values.ts'
import { credentialKeys, tokenKeys } from '../keys/credentials/credential-keys.ts'
import { withoutBlanksAround } from '../keys/credentials/credentials.ts'
import { maxReadings } from '../keys/partition-key.ts'
import { absent, MAYBE, NO, type Readings } from './readings.ts'
import type { Comparison } from './text-tests.ts'

/**
 * What backends may read of a header. The gateway forwards the headers that conditions name as one line, without others that some
 * backends take for them, such as `X_Api_Key`: so of several lines a backend may read one, or all of them together.
 *
 * - A header without anything but blanks and punctuation is there to some backends, and absent to others.
 * - Values may be read in pieces, between commas and semicolons, with and without quotes.
 *
 * @param name lower-case
 */
export function readHeader(
  name: string,
  headers: IncomingHttpHeaders,
  rawHeaders: readonly string[],
): Readings {
  const sent = headers[name]
  if (sent === undefined) return absent
  const text = typeof sent === 'string' ? sent : sent.join(', ')
  if (isEmpty.test(text)) return { absence: MAYBE, certain: [], possible: () => [] }
  const trimmed = withoutBlanksAround(text)
  const isPlain = plain.test(trimmed)
  // Several lines have been joined with a comma.
  const isOneLine =
    text === trimmed && (isPlain || !trimmed.includes(',') || countLines(name, rawHeaders) === 1)
  return {
    absence: !isPlain && hasEmptyPiece.test(trimmed) ? MAYBE : NO,
    certain: isOneLine ? [trimmed] : [],
    ...(!isPlain && separator.test(trimmed) && { parts: () => partsOf(trimmed) }),
    possible: () => piecesOf(name, trimmed, isPlain),
    // Credentials have other spellings than the one that was sent.
    ...(name !== 'authorization' && {
      possibleTexts: () => [folded(trimmed), folded(trimmed).replaceAll(/["']/g, '')],
    }),
  }
}

/** How values of a header are compared with those of the table. */
export function comparisonOfHeader(name: string, ignoresCase: boolean): Comparison {
  return { formsOf: (text) => formsOf(name, text) ?? [folded(text)], partOf: folded, ignoresCase }
}

const isEmpty = /^[\s",;'\x85\xa0]*$/
/** The first, the last, or one between two commas. */
const hasEmptyPiece = /^[\s"']*,|,[\s"']*(?:,|$)/
const plain = /^[!#-&(-+\--:<-~]*$/
const usualWord = /^[a-z][a-z_]*$/
const separator = /[,;]/
/** Above these a value is not taken apart. */
const MAX_LENGTH = 4096
const MAX_PIECES = 32

/** What counts as the same value, in lower case: also numbers, UUIDs, and tokens in other spellings. Undefined for too many. */
function formsOf(name: string, text: string): readonly string[] | undefined {
  const lower = folded(text)
  if (usualWord.test(lower)) return name === 'authorization' ? [lower, `bearer ${lower}`] : [lower]
  const others = name === 'authorization' ? credentialKeys(text) : tokenKeys(text)
  if (others.length > maxReadings) return undefined
  return [lower, ...others.map((other) => other.toLowerCase()), ...numberValues(lower, false)]
}

function piecesOf(name: string, text: string, isPlain: boolean): readonly string[] | undefined {
  if (isPlain) return formsOf(name, text)
  const pieces = text.length > MAX_LENGTH ? [] : text.split(separator)
  if (pieces.length === 0 || pieces.length > MAX_PIECES) return undefined
  const possible = new Set<string>()
  for (const piece of [text, ...pieces]) {
    const bare = withoutBlanksAround(piece.replaceAll(/["']/g, ''))
    for (const spelling of bare === piece ? [piece] : [piece, bare]) {
      const forms = formsOf(name, spelling)
      if (!forms) return undefined
      for (const form of forms) possible.add(form)
    }
  }
  return [...possible]
}

/** The pieces of a list, each with and without its parameters; of too many, one that is like nothing. */
function partsOf(text: string): readonly string[] {
  const pieces = text.split(',', MAX_PIECES + 1)
  if (pieces.length > MAX_PIECES) return ['']
  return pieces.flatMap((piece) => [piece.trim(), (piece.split(';', 1)[0] ?? '').trim()])
}

/** In lower case, with one space for several blanks. */
function folded(text: string): string {
  return text.toLowerCase().replaceAll(/[\t \x85\xa0]+/g, ' ')
}

function countLines(name: string, rawHeaders: readonly string[]): number {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const sent = rawHeaders[i] ?? ''
    if (sent.length === name.length && sent.toLowerCase() === name) count += 1
  }
  return count
}
