import { readFieldName } from '../../../proxy/http/fields/field-names.ts'

/** Fields as the parsers give them out: name, value, name, value… with names in lower case. @param fields in any letters */
export function asRead(fields: readonly string[]): string[] {
  return fields.map((text, i) => (i % 2 === 0 ? (readFieldName(text)?.name ?? text) : text))
}
