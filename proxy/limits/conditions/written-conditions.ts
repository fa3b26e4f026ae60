import type { ListEntry, RuleCondition } from '../../policy.ts'
import type { TextTest } from '../../policy/conditions.ts'

/** Writes a condition in the form of the limits table. */
export function writeCondition(condition: RuleCondition): object {
  switch (condition.kind) {
    case 'header':
    case 'cookie':
    case 'query':
    case 'jwt':
      return { [condition.kind]: { [condition.name]: writeAny(condition.anyOf.map(writeTest)) } }
    case 'userAgent':
      return { userAgent: writeAny(condition.anyOf.map(writeTest)) }
    case 'host':
    case 'country':
    case 'asn':
      return { [condition.kind]: writeAny(condition.anyOf) }
    case 'ip':
      return { ip: condition.anyOf.flatMap(writeEntry) }
  }
}

/** Writes a condition as one line of the table, such as `header: { authorization: absent }`. */
export function conditionText(condition: RuleCondition): string {
  return flowOf(writeCondition(condition)).slice('{ '.length, -' }'.length)
}

const plainWord = /^[\w*][\w.*/-]*$/

/** Writes a value as YAML in flow style, on one line. */
function flowOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flowOf).join(', ')}]`
  if (typeof value !== 'object' || value === null) {
    const text = String(value)
    return plainWord.test(text) ? text : JSON.stringify(text)
  }
  const fields = Object.entries(value).map(([name, of]) => `${name}: ${flowOf(of)}`)
  return `{ ${fields.join(', ')} }`
}

function writeTest(test: TextTest): string | object {
  if (!('text' in test)) return test.kind
  // A text such as `absent` would be read as a keyword.
  const isWord = test.kind === 'is' && test.text !== 'absent' && test.text !== 'present'
  return isWord ? test.text : { [test.kind]: test.text }
}

function writeEntry(entry: ListEntry): readonly (string | object)[] {
  return entry.kind === 'ip' ? [...entry.ranges, ...(entry.files ?? []).map(({ file }) => ({ file }))] : []
}

function writeAny<Value>(values: readonly Value[]): Value | readonly Value[] {
  const [only] = values
  return only !== undefined && values.length === 1 ? only : values
}
