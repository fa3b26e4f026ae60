import { DecodedValues } from './decoded-values.ts'
import { countedNameTest, withModelNames, type NameTest } from './value-names.ts'

/**
 * Returns the values that a backend may read from a query parameter. If it is repeated, some backends take the first value, others the
 * last, or all of them. Parameters are separated by `&`, and for some backends by `;`. The text after an escaped `?` or an `&` in the path
 * is also read, because some servers begin the query there. A member of a model, such as `model.user`, counts as well.
 *
 * @param target the path and query as forwarded
 * @param name as written in the limits table
 * @param maxValues maximum number of values to find; if there are more, one more is returned
 * @param isNumber the backend reads the value as a whole number
 * @returns without duplicates and empty values, in the form of `valuesOf`
 */
export function queryValues(target: string, name: string, maxValues: number, isNumber = false): string[] {
  const values = new DecodedValues(maxValues, { isQuoted: false, isNumber })
  const matchesName = withModelNames(countedNameTest(name, () => values.addUnread()))
  for (const query of queriesOf(target)) {
    for (const separator of query.includes(';') ? ['&', /[&;]/] : ['&']) {
      for (const pair of query.split(separator)) {
        addPair(values, pair, matchesName)
        if (values.isFull) return values.toArray()
      }
    }
  }
  return values.toArray()
}

function addPair(values: DecodedValues, pair: string, matchesName: NameTest): void {
  let start = 0
  // h3 skips equals signs before a name.
  while (pair[start] === '=') start += 1
  const equals = pair.indexOf('=', start)
  if (equals === -1) return
  if (matchesName(pair.slice(start, equals))) addValue(values, pair.slice(equals + 1))
  // For qs, the name of `user[a=b]=1` ends after the bracket; before version 6.12.2 the bracket must not be escaped.
  for (const bracket of new Set([pair.indexOf(']='), pair.search(/(?:\]|%5D)=/i)])) {
    const after = pair.indexOf('=', bracket)
    if (bracket > equals && matchesName(pair.slice(start, bracket))) addValue(values, pair.slice(after + 1))
  }
}

function addValue(values: DecodedValues, sent: string): void {
  values.addPlace()
  values.add(sent)
}

/** Begin a query in a path, for servers that decode the path before they split off the query, and rewrite rules like `index.php?url=$1`. */
const beginnings = [/%(?:25)?3f/i, /&|%(?:25)?26/i]

/** Returns the texts of a target that some backend may read as its query. */
export function queriesOf(target: string): string[] {
  const question = target.indexOf('?')
  const path = question === -1 ? target : target.slice(0, question)
  // In `??a=b`, some backends read the second `?` as part of the first name, and some drop it.
  const queries = question === -1 ? [] : [target.slice(question).replace(/^\?+/, '')]
  if (!path.includes('%') && !path.includes('&')) return queries
  for (const beginning of beginnings) {
    const [found] = beginning.exec(path) ?? []
    if (found === undefined) continue
    const once = decoded(path.slice(path.indexOf(found) + found.length))
    const twice = decoded(once)
    queries.push(once)
    if (twice !== once) queries.push(twice)
  }
  return queries
}

function decoded(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}
