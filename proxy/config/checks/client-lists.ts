import { problemAt, type Place, type Problem } from '../../../shared/settings/problems.ts'
import type { ListEntry, Rule } from '../../policy.ts'
import { createAddressSet } from '../../request/addresses/address-set.ts'
import { parseAddressRange, type AddressRange } from '../../request/ip-address.ts'

/** The lists of a file, as far as they are sound. */
export type WrittenLists = {
  readonly allowList?: readonly ListEntry[] | undefined
  readonly denyList?: readonly ListEntry[] | undefined
  readonly limits?: readonly Rule[] | undefined
}

type PlaceOf = (path: readonly PropertyKey[]) => Place

/** Finds what an `allowList` has that `denyList` has too: it is refused before any rule, and so never let pass. */
export function findDeniedAllowances(lists: WrittenLists, placeOf: PlaceOf): Problem[] {
  const { denyList = [], allowList = [], limits = [] } = lists
  if (denyList.length === 0) return []
  const denied = createAddressSet(denyList.flatMap(rangesOf))
  const deniedHeaders = new Set(denyList.flatMap(headerOf))
  const isDenied = (entry: ListEntry): boolean =>
    rangesOf(entry).some((range) => denied.contains(range)) ||
    headerOf(entry).some((header) => deniedHeaders.has(header))
  const findIn = (entries: readonly ListEntry[], path: readonly PropertyKey[]): Problem[] =>
    [...entries.entries()].flatMap(([index, entry]) =>
      isDenied(entry)
        ? [
            problemAt(
              placeOf([...path, index]),
              'has an entry that denyList has too, which comes first: keep one',
            ),
          ]
        : [],
    )
  return [
    ...findIn(allowList, ['allowList']),
    ...[...limits.entries()].flatMap(([index, rule]) =>
      findIn(rule.allowList ?? [], ['limits', index, 'allowList']),
    ),
  ]
}

/** Warns of entries that everybody is on. */
export function warnOfEverybody({ allowList = [], denyList = [] }: WrittenLists, placeOf: PlaceOf): string[] {
  const warn = (entries: readonly ListEntry[], field: string, what: string): string[] =>
    [...entries.entries()].flatMap(([index, entry]) =>
      entry.kind === 'ip' && entry.ranges.some((range) => range.endsWith('/0'))
        ? [`${placeOf([field, index]).label}: every client is on the list, ${what}`]
        : [],
    )
  return [
    ...warn(allowList, 'allowList', 'so no rule applies to anybody'),
    ...warn(denyList, 'denyList', 'so every request is refused'),
  ]
}

function rangesOf(entry: ListEntry): AddressRange[] {
  return entry.kind === 'ip' ? entry.ranges.flatMap((text) => parseAddressRange(text) ?? []) : []
}

function headerOf(entry: ListEntry): string[] {
  return entry.kind === 'header' ? [`${entry.name}:${entry.sha256}`] : []
}
