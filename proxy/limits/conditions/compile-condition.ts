import type { RuleCondition } from '../../policy.ts'
import { UNKNOWN } from '../../request/addresses/geo/geo.ts'
import { comparableHost } from '../../request/host.ts'
import { parseClientRange, type IpAddress } from '../../request/addresses/ip-address.ts'
import { RangeBuilder } from '../../request/addresses/lists/range-builder.ts'
import { SortedRanges } from '../../request/addresses/lists/sorted-ranges.ts'
import type { AddressLists } from '../../request/addresses/lists/address-lists.ts'
import type { ConditionReaders, ConditionSource } from './condition-readers.ts'
import { comparisonOfClaims } from './claim-readings.ts'
import { comparisonOfHeader } from './header-readings.ts'
import { comparisonOfParameter } from './parameter-readings.ts'
import type { Readings } from './readings.ts'
import { compileTests, type CompiledTest } from './text-tests.ts'

export type CompiledCondition = {
  /** Whether the condition holds for at least one backend, because backends read requests differently. */
  mayHold(source: ConditionSource): boolean
  /** Whether the condition holds for every backend. */
  mustHold(source: ConditionSource): boolean
  /** Relative cost of evaluating the condition. Cheap conditions are evaluated first. */
  readonly cost: number
}

/**
 * Compiles a condition once, so that requests only evaluate it.
 *
 * @param files the address lists that `ip` conditions name
 */
export function compileCondition(
  condition: RuleCondition,
  readers: ConditionReaders,
  files: AddressLists,
): CompiledCondition {
  switch (condition.kind) {
    case 'header':
    case 'userAgent': {
      const isAgent = condition.kind === 'userAgent'
      const name = isAgent ? 'user-agent' : condition.name
      const tests = compileTests(condition.anyOf, comparisonOfHeader(name, isAgent))
      return withReadings(readers.header(name), tests, 3)
    }
    case 'cookie': {
      const tests = compileTests(condition.anyOf, comparisonOfParameter(true))
      return withReadings(readers.cookie(condition.name), tests, 5)
    }
    case 'query': {
      const tests = compileTests(condition.anyOf, comparisonOfParameter(false))
      return withReadings(readers.parameter(condition.name), tests, 4)
    }
    case 'jwt': {
      const tests = compileTests(condition.anyOf, comparisonOfClaims)
      return withReadings(readers.claim(condition.name), tests, 2)
    }
    case 'host':
      return compileHosts(condition.anyOf)
    case 'country':
    case 'asn': {
      const { kind } = condition
      const wanted = new Set(condition.anyOf)
      return certain(({ geo, client }) => wanted.has(geo?.find(kind, client.address) ?? UNKNOWN), 6)
    }
    case 'ip': {
      const isListed = compileAddresses(condition.anyOf, files)
      return certain((source) => {
        const address = readers.address(source)
        return address !== undefined && isListed(address)
      }, 2)
    }
  }
}

function withReadings(
  read: (source: ConditionSource) => Readings,
  tests: CompiledTest,
  cost: number,
): CompiledCondition {
  return {
    mayHold: (source) => tests.mayHold(read(source)),
    mustHold: (source) => tests.mustHold(read(source)),
    cost,
  }
}

/** A condition on a part of the request that every backend reads in the same way. */
function certain(holds: (source: ConditionSource) => boolean, cost: number): CompiledCondition {
  return { mayHold: holds, mustHold: holds, cost }
}

function compileAddresses(
  entries: (RuleCondition & { kind: 'ip' })['anyOf'],
  files: AddressLists,
): (address: IpAddress) => boolean {
  const lists = entries.flatMap((entry) =>
    entry.kind === 'ip' ? (entry.files ?? []).map(({ location }) => files.of(location)) : [],
  )
  const texts = entries.flatMap((entry) => (entry.kind === 'ip' ? entry.ranges : []))
  const builder = new RangeBuilder(texts.length)
  for (const text of texts) {
    const range = parseClientRange(text)
    if (range) builder.add(range)
  }
  const ranges = new SortedRanges(builder.build())
  return (address) => ranges.has(address) || lists.some((list) => list.has(address))
}

/** Matches hosts. Some backends, such as Go's, distinguish hosts by letter case and trailing dots, and may serve another site for them. */
function compileHosts(patterns: readonly string[]): CompiledCondition {
  const exact = new Set(patterns.filter((pattern) => !pattern.startsWith('*')))
  const endings = patterns.filter((pattern) => pattern.startsWith('*')).map((pattern) => pattern.slice(1))
  const matchesHost = (host: string): boolean =>
    exact.has(host) || endings.some((ending) => host.endsWith(ending))
  return {
    mayHold: ({ host }) => matchesHost(comparableHost(host)),
    mustHold: ({ host: authority }) => {
      const host = comparableHost(authority)
      if (!matchesHost(host)) return false
      const sent = authority.replace(/:\d*$/, '')
      return sent === host || sent === `[${host}]`
    },
    cost: 1,
  }
}
