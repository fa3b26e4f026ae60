import { DecodedValues } from './decoded-values.ts'
import { lenientNames } from './lenient-text.ts'

/**
 * The values that a backend may read of a query parameter: of several one takes the first, another the last, and another
 * all of them. Parameters are separated by `&`, to some also by `;`. Where a server takes an escaped `?` in the path for
 * the beginning of the query, what follows it is read too.
 *
 * @param target path and query as forwarded
 * @param name as the limits table has it
 * @param most the values to look for at most; one more is given where there are more
 * @returns each once, in the form of `lenientText`; none that is empty
 */
export function queryValues(target: string, name: string, most: number): string[] {
  const values = new DecodedValues(most, false)
  const [wanted] = lenientNames(name)
  for (const query of queriesOf(target)) {
    for (const separator of query.includes(';') ? ['&', /[&;]/] : ['&']) {
      for (const pair of query.split(separator)) {
        const equals = pair.indexOf('=')
        if (equals === -1 || !lenientNames(pair.slice(0, equals)).includes(wanted)) continue
        values.add(pair.slice(equals + 1))
        if (values.isFull) return values.toArray()
      }
    }
  }
  return values.toArray()
}

function queriesOf(target: string): string[] {
  const question = target.indexOf('?')
  const path = question === -1 ? target : target.slice(0, question)
  // Of `??a=b`, some take the second for a part of the first name, and some drop it.
  const queries = question === -1 ? [] : [target.slice(question).replace(/^\?+/, '')]
  const escaped = path.indexOf('%3F')
  if (escaped === -1) return queries
  const decoded = path
    .slice(escaped + '%3F'.length)
    .replace(/%([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return [...queries, decoded]
}
