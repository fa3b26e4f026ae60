import { MAX_NAME_LENGTH, readFieldName, type FieldName } from '../../fields/field-names.ts'
import { trimBlanks } from '../../fields/trim-blanks.ts'
import { RequestSyntaxError } from './syntax-error.ts'

/** Names that are remembered for one connection. */
const MAX_NAMES = 32

/**
 * Reads a line of a head or of trailers (RFC 9112 section 5), whose characters have been checked, and appends its name in lower case and
 * its value without the blanks around it.
 *
 * @param start where in the text the line begins
 * @param end where it ends, without its CRLF
 * @param fields to append to: name, value, name, value…
 * @param names of the previous head on the connection. Most names are the same in the same place, and need no look-up
 * @returns how the field frames the message; undefined for most
 * @throws {RequestSyntaxError}
 */
export function readFieldLine(
  text: string,
  start: number,
  end: number,
  fields: string[],
  names: FieldName[],
): FieldName['framing'] {
  const colon = text.indexOf(':', start)
  if (colon === -1 || colon >= end) throw new RequestSyntaxError('header line without a colon')
  const written = text.slice(start, colon)
  const place = fields.length / 2
  let name = names[place]
  if (name?.spelling !== written) {
    name = readFieldName(written)
    if (!name) throw new RequestSyntaxError('invalid header name')
    if (place < MAX_NAMES && written.length <= MAX_NAME_LENGTH) names[place] = name
  }
  fields.push(name.name, trimBlanks(text, colon + 1, end))
  return name.framing
}
