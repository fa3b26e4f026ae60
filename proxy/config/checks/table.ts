import { problemAt, type Place, type Problem } from '../../../shared/settings/problems.ts'
import type { Rule } from '../../policy.ts'
import { writtenName } from '../limits.ts'

/** Finds the place of a field of a rule, by the rule's index. */
export type PlaceOfRule = (index: number, field: 'name' | 'key') => Place

/**
 * Finds names that several rules have, also where the rules are wrong in other ways.
 *
 * @param limits the table as written, whatever it is
 */
export function findRepeatedNames(limits: unknown, placeOf: PlaceOfRule): Problem[] {
  const firstIndexes = new Map<string, number>()
  const problems: Problem[] = []
  const rules: readonly unknown[] = Array.isArray(limits) ? limits : []
  for (const [index, rule] of rules.entries()) {
    const name = writtenName(rule)
    if (name === undefined) continue
    const first = firstIndexes.get(name)
    if (first === undefined) firstIndexes.set(name, index)
    else {
      const { line } = placeOf(first, 'name')
      problems.push(
        problemAt(placeOf(index, 'name'), `needs another name, the rule on line ${line} has this one`),
      )
    }
  }
  return problems
}

/** Warns of rules that a client can avoid. */
export function warnOfHeaderKeys(rules: readonly Rule[], placeOf: PlaceOfRule): string[] {
  return [...rules.entries()].flatMap(([index, { policy }]) => {
    if (policy.partition.some(({ kind }) => kind === 'ip')) return []
    return `${placeOf(index, 'key').label}: without ip, a client can avoid the limit by leaving out or changing the header`
  })
}
