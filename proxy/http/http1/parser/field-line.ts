import { trimBlanks } from '../../fields/trim-blanks.ts'
import { ownCopy } from '../../message/detach-buffer.ts'
import { Remembered } from '../../message/remembered.ts'
import { MAX_NAME_LENGTH, usualNames } from '../../message/usual-names.ts'
import { RequestSyntaxError } from './syntax-error.ts'

/** The meaning of fields that the parser itself uses. */
export type FieldMeaning = 'content-length' | 'transfer-encoding' | 'connection' | undefined

/** A name as spelled, and its meaning. */
export type FieldName = { readonly spelling: string; readonly meaning: FieldMeaning }

/** RFC 9110 section 5.6.2. */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
/** Of one connection. */
const MAX_NAMES = 32

/** Spellings in use, so that each is checked once, and so that no request keeps a copy of its own. */
const remembered = new Remembered<FieldName>(
  1024,
  MAX_NAME_LENGTH,
  usualNames.map((name) => [name, { spelling: name, meaning: meaningOf(name.toLowerCase()) }]),
)

function fieldNameOf(spelling: string): FieldName {
  if (!token.test(spelling)) throw new RequestSyntaxError('invalid header name')
  if (spelling.length > MAX_NAME_LENGTH) return { spelling, meaning: undefined }
  const copy = ownCopy(spelling)
  const made = { spelling: copy, meaning: meaningOf(copy.toLowerCase()) }
  remembered.add(copy, made)
  return made
}

function meaningOf(name: string): FieldMeaning {
  return name === 'content-length' || name === 'transfer-encoding' || name === 'connection' ? name : undefined
}

/**
 * Reads a line of a head or of trailers (RFC 9112 section 5), whose characters have been checked, and appends its name, as spelled,
 * and its value without the blanks around it.
 *
 * @param start where in the text the line begins
 * @param end where it ends, without its CRLF
 * @param names of the lines of the head before it on the connection, mostly the same: found there, a name is not looked up
 * @throws {RequestSyntaxError}
 */
export function readFieldLine(
  text: string,
  start: number,
  end: number,
  fields: string[],
  names: FieldName[],
): FieldMeaning {
  const colon = text.indexOf(':', start)
  if (colon === -1 || colon >= end) throw new RequestSyntaxError('header line without a colon')
  const written = text.slice(start, colon)
  const place = fields.length / 2
  let name = names[place]
  if (name?.spelling !== written) {
    name = remembered.find(written) ?? fieldNameOf(written)
    if (place < MAX_NAMES && written.length <= MAX_NAME_LENGTH) names[place] = name
  }
  fields.push(name.spelling, trimBlanks(text, colon + 1, end))
  return name.meaning
}
