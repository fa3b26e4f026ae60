import { singleSources, type CostSource, type SingleCostSource } from '../../policy.ts'

/** Units; undefined if not stated; `later` if not known yet. */
export type Units = number | undefined | 'later'

/**
 * Returns the cost of a response by a rule's source: the first source of a list that is present, or the sum of those that are present.
 *
 * @param read returns the units that a header or a member of the body states
 */
export function unitsBy(source: CostSource, read: (single: SingleCostSource) => Units): Units {
  switch (source.kind) {
    case 'first': {
      for (const one of source.of) {
        const units = unitsBy(one, read)
        if (units !== undefined) return units
      }
      return undefined
    }
    case 'sum': {
      let sum: number | undefined
      for (const one of source.of) {
        const units = unitsBy(one, read)
        if (units === 'later') return units
        if (units !== undefined) sum = Math.min((sum ?? 0) + units, Number.MAX_SAFE_INTEGER)
      }
      return sum
    }
    default:
      return read(source)
  }
}

/** The JSON paths that sources name, without duplicates: member names, joined by dots. */
export function pathsIn(sources: readonly CostSource[]): string[] {
  const paths = sources
    .flatMap(singleSources)
    .flatMap((single) => (single.kind === 'json' ? [pathOf(single)] : []))
  return [...new Set(paths)]
}

/** A path in the syntax of the settings. */
export function pathOf({ path }: Extract<SingleCostSource, { kind: 'json' }>): string {
  return path.join('.')
}
