import { singleSources, type CostSource, type SingleCostSource } from '../../policy.ts'

/** Units; undefined if not stated, `later` if not known yet. */
export type Units = number | undefined | 'later'

/**
 * The cost of a response by the sources of a rule: the first that is present of a list, all that are present of a sum.
 *
 * @param read what one header, or one place in the body, says
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

/** The places in the JSON of bodies that a source names, each once: names of members, joined by dots. */
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
