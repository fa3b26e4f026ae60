import { problemAt, type PlaceOf, type Problem } from '../../../shared/settings/problems.ts'
import type { ListEntry, Rule, RuleCondition } from '../../policy.ts'
import { createAddressSet } from '../../request/addresses/address-set.ts'
import { missesNat64, parseAddressRange, type AddressRange } from '../../request/addresses/ip-address.ts'
import { NOT_BEHIND_NAT64 } from '../../request/addresses/lists/list-problems.ts'

/** The valid lists of a file. */
export type WrittenLists = {
  readonly allowList?: readonly ListEntry[] | undefined
  readonly denyList?: readonly ListEntry[] | undefined
  readonly limits?: readonly Rule[] | undefined
}

/** Finds entries of an `allowList` that are also in `denyList`, which applies first: their clients are refused before any rule. */
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
        ? [problemAt(placeOf([...path, index]), 'repeats an entry of denyList, which comes first: keep one')]
        : [],
    )
  return [
    ...findIn(allowList, ['allowList']),
    ...[...limits.entries()].flatMap(([index, rule]) =>
      findIn(rule.allowList ?? [], ['limits', index, 'allowList']),
    ),
  ]
}

/**
 * Finds overrides that never apply, because all their clients are on a list that applies first, or have an earlier override. Does not find
 * a network inside the network of an earlier override.
 */
export function findIdleOverrides(lists: WrittenLists, placeOf: PlaceOf): Problem[] {
  const { denyList = [], allowList = [], limits = [] } = lists
  const ofAll = [
    { name: 'denyList', isOn: compile(denyList) },
    { name: 'allowList', isOn: compile(allowList) },
  ]
  return [...limits.entries()].flatMap(([index, { overrides = [], allowList: own = [] }]) => {
    const firstLists = [...ofAll, { name: 'the allowList of its rule', isOn: compile(own) }]
    const earlier = new Set<string>()
    return [...overrides.entries()].flatMap(([at, { clients, accounts = [] }]) => {
      const keys = [...clients.flatMap(keysOf), ...accounts]
      const list = accounts.length > 0 ? undefined : firstLists.find(({ isOn }) => clients.every(isOn))
      const reason = list ? `are on ${list.name}` : 'have an earlier override'
      const isIdle = list !== undefined || keys.every((key) => earlier.has(key))
      for (const key of keys) earlier.add(key)
      const place = placeOf(['limits', index, 'overrides', at])
      return isIdle ? [problemAt(place, `can never apply: all its clients ${reason}, which comes first`)] : []
    })
  })
}

/** Warns of entries that include every client. */
export function warnOfEverybody(lists: WrittenLists, placeOf: PlaceOf): string[] {
  const { allowList = [], denyList = [], limits = [] } = lists
  const warn = (entries: readonly ListEntry[], path: readonly PropertyKey[], what: string): string[] =>
    [...entries.entries()].flatMap(([index, entry]) =>
      entry.kind === 'ip' && entry.ranges.some((range) => range.endsWith('/0'))
        ? [`${placeOf([...path, index]).label}: every client is on the list, ${what}`]
        : [],
    )
  return [
    ...warn(allowList, ['allowList'], 'so no rule applies to anybody'),
    ...warn(denyList, ['denyList'], 'so every request is refused'),
    ...[...limits.entries()].flatMap(([index, rule]) =>
      warn(rule.allowList ?? [], ['limits', index, 'allowList'], 'so the rule applies to nobody'),
    ),
  ]
}

/** Warns of networks in the NAT64 prefix that are not those of IPv4 clients. Networks in files are checked when the files are read. */
export function warnOfNat64(lists: WrittenLists, placeOf: PlaceOf): string[] {
  const { allowList = [], denyList = [], limits = [] } = lists
  const warn = (entries: readonly ListEntry[], path: readonly PropertyKey[]): string[] =>
    entries.flatMap(missedIn).map((range) => `${placeOf(path).label}: ${range} ${NOT_BEHIND_NAT64}`)
  const warnOfEach = (entries: readonly ListEntry[], path: readonly PropertyKey[]): string[] =>
    [...entries.entries()].flatMap(([index, entry]) => warn([entry], [...path, index]))
  return [
    ...warnOfEach(allowList, ['allowList']),
    ...warnOfEach(denyList, ['denyList']),
    ...[...limits.entries()].flatMap(
      ([index, { allowList: own = [], overrides = [], when = [], unless = [] }]) => [
        ...warnOfEach(own, ['limits', index, 'allowList']),
        ...[...overrides.entries()].flatMap(([at, { clients }]) =>
          warn(clients, ['limits', index, 'overrides', at]),
        ),
        ...warn(when.flatMap(addressesOf), ['limits', index, 'when']),
        ...warn(unless.flatMap(addressesOf), ['limits', index, 'unless']),
      ],
    ),
  ]
}

function addressesOf(condition: RuleCondition): readonly ListEntry[] {
  return condition.kind === 'ip' ? condition.anyOf : []
}

function missedIn(entry: ListEntry): string[] {
  if (entry.kind !== 'ip') return []
  return entry.ranges.filter((text) => {
    const range = parseAddressRange(text)
    return range !== undefined && missesNat64(range)
  })
}

/** Returns a function that tests whether the list contains all clients of an entry. */
function compile(entries: readonly ListEntry[]): (entry: ListEntry) => boolean {
  const addresses = createAddressSet(entries.flatMap(rangesOf))
  const headers = new Set(entries.flatMap(headerOf))
  return (entry) =>
    rangesOf(entry).every((range) => addresses.contains(range)) &&
    headerOf(entry).every((header) => headers.has(header))
}

function keysOf(entry: ListEntry): string[] {
  return entry.kind === 'ip' ? [...entry.ranges] : headerOf(entry)
}

function rangesOf(entry: ListEntry): AddressRange[] {
  return entry.kind === 'ip' ? entry.ranges.flatMap((text) => parseAddressRange(text) ?? []) : []
}

function headerOf(entry: ListEntry): string[] {
  return entry.kind === 'header' ? [`${entry.name}:${entry.sha256}`] : []
}
