import type { ListEntry, RuleCondition } from '../../../policy.ts'
import type { TextTest } from '../../../policy/conditions.ts'
import { conditionText } from '../../../limits/conditions/written-conditions.ts'
import { createAddressSet } from '../../../request/addresses/address-set.ts'
import { parseAddressRange, type AddressRange } from '../../../request/addresses/ip-address.ts'

type Mistake = { readonly path: readonly ['when' | 'unless', number]; readonly message: string }

/**
 * Finds conditions that repeat or contradict others of the rule: with them, the rule would apply to no request, or to the same requests as
 * without them.
 */
export function findConditionMistakes({
  hosts,
  when = [],
  unless = [],
}: {
  readonly hosts?: readonly string[] | undefined
  readonly when?: readonly RuleCondition[] | undefined
  readonly unless?: readonly RuleCondition[] | undefined
}): Mistake[] {
  const ofHosts: readonly RuleCondition[] = hosts ? [{ kind: 'host', anyOf: hosts }] : []
  const mistakeInWhen = (one: RuleCondition, index: number): string | undefined => {
    const before = when.slice(0, index)
    if (hasEverybody(one)) return 'has every address: leave it out'
    if (before.some((other) => isSame(one, other))) return 'repeats an entry of when'
    if (ofHosts.some((other) => excludes(one, other))) return 'can never hold, as hosts has none of these'
    const other = before.find((each) => excludes(one, each))
    return other && `can never hold together with ${conditionText(other)}`
  }
  const mistakeInUnless = (one: RuleCondition, index: number): string | undefined => {
    if (hasEverybody(one)) return 'has every address, so the rule would apply to nobody'
    if (unless.slice(0, index).some((other) => isSame(one, other))) return 'repeats an entry of unless'
    if (ofHosts.some((other) => implies(other, one)))
      return 'excludes all requests that meet hosts: the rule would never apply'
    const isAll = when.some((other) => implies(other, one))
    return isAll ? 'excludes all requests that meet when: the rule would never apply' : undefined
  }
  return [
    ...[...when.entries()].flatMap(([index, one]) => mistakeAt(['when', index], mistakeInWhen(one, index))),
    ...[...unless.entries()].flatMap(([index, one]) =>
      mistakeAt(['unless', index], mistakeInUnless(one, index)),
    ),
  ]
}

function mistakeAt(path: Mistake['path'], message: string | undefined): Mistake[] {
  return message === undefined ? [] : [{ path, message }]
}

function isSame(one: RuleCondition, other: RuleCondition): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** Whether both conditions test the same part of a request. */
function isAlike(one: RuleCondition, other: RuleCondition): boolean {
  const nameOf = (each: RuleCondition): string => ('name' in each ? each.name : '')
  return one.kind === other.kind && nameOf(one) === nameOf(other)
}

/** Whether the second condition holds for every request that meets the first. */
function implies(one: RuleCondition, other: RuleCondition): boolean {
  if (!isAlike(one, other)) return false
  if (one.kind === 'ip' && other.kind === 'ip') {
    const [ranges, set] = [rangesOf(one.anyOf), createAddressSet(rangesOf(other.anyOf) ?? [])]
    return ranges?.every((range) => set.contains(range)) ?? false
  }
  if (one.kind === 'host' && other.kind === 'host')
    return one.anyOf.every((host) => other.anyOf.some((wide) => hasHost(wide, host)))
  if (isGeo(one) && isGeo(other)) return one.anyOf.every((value) => other.anyOf.includes(value))
  const [tests, others] = [testsOf(one), testsOf(other)]
  return tests.length > 0 && tests.every((test) => others.some((each) => testImplies(test, each)))
}

/** Whether no request can meet both conditions. */
function excludes(one: RuleCondition, other: RuleCondition): boolean {
  if (!isAlike(one, other)) return false
  if (one.kind === 'ip' && other.kind === 'ip') {
    const [ranges, others] = [rangesOf(one.anyOf), rangesOf(other.anyOf)]
    return (
      ranges !== undefined && others !== undefined && !overlap(ranges, others) && !overlap(others, ranges)
    )
  }
  if (one.kind === 'host' && other.kind === 'host')
    return !one.anyOf.some((host) => other.anyOf.some((each) => hasHost(each, host) || hasHost(host, each)))
  if (isGeo(one) && isGeo(other)) return !one.anyOf.some((value) => other.anyOf.includes(value))
  // A claim can be a list, of which several values can match.
  if (one.kind === 'jwt' && !hasAbsence(one) && !hasAbsence(other)) return false
  const others = testsOf(other)
  return testsOf(one).every((test) => others.every((each) => testsExclude(test, each)))
}

function testsOf(condition: RuleCondition): readonly TextTest[] {
  return condition.kind === 'ip' || condition.kind === 'host' || isGeo(condition) ? [] : condition.anyOf
}

type GeoCondition = RuleCondition & { readonly kind: 'country' | 'asn' }

function isGeo(condition: RuleCondition): condition is GeoCondition {
  return condition.kind === 'country' || condition.kind === 'asn'
}

function hasAbsence(condition: RuleCondition): boolean {
  return testsOf(condition).some(({ kind }) => kind === 'absent')
}

function testImplies(one: TextTest, other: TextTest): boolean {
  if (other.kind === 'present') return one.kind !== 'absent'
  if (!('text' in one) || !('text' in other)) return one.kind === other.kind
  if (one.kind === 'is' || one.kind === other.kind) return holds(other, one.text)
  return one.kind === 'prefix' && other.kind === 'contains' && holds(other, one.text)
}

/** Whether no text passes both tests, ignoring letter case, as some backends do. */
function testsExclude(one: TextTest, other: TextTest): boolean {
  if (one.kind === 'absent' || other.kind === 'absent') return one.kind !== other.kind
  if (!('text' in one) || !('text' in other)) return false
  const [a, b] = [lower(one), lower(other)]
  if (a.kind === 'is') return !holds(b, a.text)
  if (b.kind === 'is') return !holds(a, b.text)
  const arePrefixes = a.kind === 'prefix' && b.kind === 'prefix'
  return arePrefixes && !a.text.startsWith(b.text) && !b.text.startsWith(a.text)
}

type WithText = TextTest & { readonly text: string }

function lower(test: WithText): WithText {
  return { ...test, text: test.text.toLowerCase() }
}

function holds({ kind, text }: WithText, value: string): boolean {
  if (kind === 'is') return value === text
  return kind === 'prefix' ? value.startsWith(text) : value.includes(text)
}

function hasHost(wide: string, host: string): boolean {
  return wide === host || (wide.startsWith('*') && host.endsWith(wide.slice(1)))
}

/** Returns the ranges of the entries; undefined if one is not an address in the table itself, because a file may change. */
function rangesOf(entries: readonly ListEntry[]): readonly AddressRange[] | undefined {
  const texts = entries.map((entry) => (entry.kind === 'ip' && !entry.files ? entry.ranges : undefined))
  if (texts.includes(undefined)) return undefined
  return texts.flatMap((ranges = []) => ranges.flatMap((text) => parseAddressRange(text) ?? []))
}

function overlap(ranges: readonly AddressRange[], others: readonly AddressRange[]): boolean {
  const set = createAddressSet(ranges)
  return others.some((range) => set.contains(range))
}

function hasEverybody(condition: RuleCondition): boolean {
  return (
    condition.kind === 'ip' &&
    condition.anyOf.some((entry) => entry.kind === 'ip' && entry.ranges.some((text) => text.endsWith('/0')))
  )
}
