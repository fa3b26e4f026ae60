import { DecodedValues } from './decoded-values.ts'
import { countedNameTest, type NameTest } from './value-names.ts'

/**
 * The values that a backend may read of a query parameter: of several one takes the first, another the last, and another
 * all of them. Parameters are separated by `&`, to some also by `;`. Where a server takes an escaped `?` or an `&` in the path
 * for the beginning of the query, the text after it is read too.
 *
 * @param target path and query as forwarded
 * @param name as the limits table has it
 * @param maxValues the values to look for at most; one more is given where there are more
 * @param isNumber the backend takes it for a whole number
 * @returns each once, in the form of `valuesOf`; none that is empty
 */
export function queryValues(target: string, name: string, maxValues: number, isNumber = false): string[] {
  const values = new DecodedValues(maxValues, { isQuoted: false, isNumber })
  const matchesName = countedNameTest(name, () => values.addUnread())
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
  // To h3 the name begins after them.
  while (pair[start] === '=') start += 1
  const equals = pair.indexOf('=', start)
  if (equals === -1) return
  if (matchesName(pair.slice(start, equals))) addValue(values, pair.slice(equals + 1))
  // To qs the name of `user[a=b]=1` ends after the bracket.
  const bracket = pair.search(/(?:\]|%5D)=/i)
  const after = pair.indexOf('=', bracket)
  if (bracket > equals && matchesName(pair.slice(start, bracket))) addValue(values, pair.slice(after + 1))
}

function addValue(values: DecodedValues, sent: string): void {
  values.addPlace()
  values.add(sent)
}

/** Begin a query in a path: to a server that decodes it before it looks for one, and to a rewrite rule such as `index.php?url=$1`. */
const beginnings = [/%(?:25)?3f/i, /&|%(?:25)?26/i]

/** The texts of a target that some backend may take for its query. */
export function queriesOf(target: string): string[] {
  const question = target.indexOf('?')
  const path = question === -1 ? target : target.slice(0, question)
  // Of `??a=b`, some take the second for a part of the first name, and some drop it.
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
