import { readFieldName } from '../../../proxy/http/fields/field-names.ts'

/** Returns fields as the parsers do: name, value, name, value… with names in lower case. @param fields with names in any case */
export function asRead(fields: readonly string[]): string[] {
  return fields.map((text, i) => (i % 2 === 0 ? (readFieldName(text)?.name ?? text) : text))
}
