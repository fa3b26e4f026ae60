import type { RuleCondition } from '../../policy.ts'
import type { TextTest } from '../../policy/conditions.ts'
import { UNKNOWN } from '../../request/addresses/geo/geo.ts'
import { comparableHost } from '../../request/host.ts'
import { parseAddress, parseAddressRange } from '../../request/addresses/ip-address.ts'
import { RangeBuilder, SortedRanges } from '../../request/addresses/lists/sorted-ranges.ts'
import type { AddressLists } from '../../request/addresses/lists/address-lists.ts'
import type { KeySource } from '../keys/part-values.ts'
import { comparisonOfClaims, readClaim } from './claim-readings.ts'
import { comparisonOfHeader, readHeader } from './header-readings.ts'
import { comparisonOfParameter, readCookie, readParameter, wantedName } from './parameter-readings.ts'
import { NO, YES, type Certainty } from './readings.ts'
import { compileTests } from './text-tests.ts'

/** The parts of a request that conditions are about. */
export type ConditionSource = Omit<KeySource, 'addresses'> & { readonly rawHeaders: readonly string[] }

export type ConditionOptions = {
  /** Those that conditions name. */
  readonly files: AddressLists
  /** Milliseconds of the wall clock, which tokens go by. */
  readonly wallNow: () => number
}

/** Whether a condition holds for a request. */
export type ReadCondition = (source: ConditionSource) => Certainty

export function compileCondition(
  condition: RuleCondition,
  { wallNow, files }: ConditionOptions,
): ReadCondition {
  switch (condition.kind) {
    case 'header':
      return compileHeader(condition.name, condition.anyOf, false)
    case 'userAgent':
      return compileHeader('user-agent', condition.anyOf, true)
    case 'cookie': {
      const { name, anyOf } = condition
      const test = compileTests(anyOf, comparisonOfParameter(true))
      const wanted = wantedName(name)
      return ({ headers }) => test(readCookie(wanted, headers.cookie))
    }
    case 'query': {
      const { name, anyOf } = condition
      const test = compileTests(anyOf, comparisonOfParameter(false))
      const wanted = wantedName(name)
      return ({ target }) => test(readParameter(wanted, target.forwardTarget))
    }
    case 'jwt': {
      const { name, anyOf } = condition
      const test = compileTests(anyOf, comparisonOfClaims)
      return ({ claims, headers }) => test(readClaim(name, claims, headers.authorization, wallNow()))
    }
    case 'host':
      return compileHosts(condition.anyOf)
    case 'country':
    case 'asn': {
      const wanted = new Set(condition.anyOf)
      return ({ geo, client }) =>
        wanted.has(geo?.find(condition.kind, client.address) ?? UNKNOWN) ? YES : NO
    }
    case 'ip': {
      const lists = condition.anyOf.flatMap((entry) =>
        entry.kind === 'ip' ? (entry.files ?? []).map(({ location }) => files.of(location)) : [],
      )
      const texts = condition.anyOf.flatMap((entry) => (entry.kind === 'ip' ? entry.ranges : []))
      const builder = new RangeBuilder(texts.length)
      for (const text of texts) {
        const range = parseAddressRange(text)
        if (range) builder.add(range)
      }
      const ranges = new SortedRanges(builder.build())
      return ({ client }) => {
        const address = parseAddress(client.address)
        return address && (ranges.has(address) || lists.some((list) => list.has(address))) ? YES : NO
      }
    }
  }
}

function compileHeader(name: string, anyOf: readonly TextTest[], ignoresCase: boolean): ReadCondition {
  const test = compileTests(anyOf, comparisonOfHeader(name, ignoresCase))
  return ({ headers, rawHeaders }) => test(readHeader(name, headers, rawHeaders))
}

function compileHosts(patterns: readonly string[]): ReadCondition {
  const exact = new Set(patterns.filter((pattern) => !pattern.startsWith('*')))
  const endings = patterns.filter((pattern) => pattern.startsWith('*')).map((pattern) => pattern.slice(1))
  return (source) => {
    const host = comparableHost(source.host)
    return exact.has(host) || endings.some((ending) => host.endsWith(ending)) ? YES : NO
  }
}
