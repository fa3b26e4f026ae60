import { countsInFlight } from '../../limits/algorithms/registry.ts'
import { problemAt, type Place, type Problem } from '../../../shared/settings/problems.ts'
import { includesStatus, type Policy, type Rule, type RuleCondition } from '../../policy.ts'
import { singleParts, type PartitionPart, type SinglePart } from '../../policy/partition.ts'
import { writtenName } from '../rules/limits.ts'
import { isCovered, toSegments } from '../rules/pattern-cover.ts'

/** Returns the place of a field of a rule, by the rule's index. */
export type PlaceOfRule = (
  index: number,
  field:
    | 'name'
    | 'match'
    | 'except'
    | 'key'
    | 'requests'
    | 'cost'
    | 'countStatus'
    | 'concurrency'
    | 'device'
    | 'over'
    | 'plan'
    | 'plans'
    | 'lease'
    | 'when'
    | 'unless',
) => Place

/**
 * Finds names that several rules share, even if those rules have other mistakes.
 *
 * @param limits the table of rules or routes as written, of any type
 */
export function findRepeatedNames(limits: unknown, placeOf: PlaceOfRule, kind = 'rule'): Problem[] {
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
        problemAt(placeOf(index, 'name'), `duplicate name, the ${kind} on line ${line} has the same`),
      )
    }
  }
  return problems
}

/**
 * Finds rules that read the header in which trusted proxies name their client. The header is believed from trusted proxies only, but a rule
 * that reads it would believe every client.
 *
 * @param header name of the header, in lower case
 */
export function findAddressKeys(
  rules: readonly Rule[] = [],
  header: string | undefined,
  placeOf: PlaceOfRule,
): Problem[] {
  const text = `reads the header that clientAddressHeader names, needs ip: this header is trusted from trusted proxies only`
  const isIt = (part: { readonly kind: string; readonly name?: string }): boolean =>
    part.kind === 'header' && part.name === header
  return [...rules.entries()].flatMap(([index, { policy, when = [], unless = [] }]) => [
    ...(singleParts(policy.partition).some(isIt) ? [problemAt(placeOf(index, 'key'), text)] : []),
    ...(when.some(isIt) ? [problemAt(placeOf(index, 'when'), text)] : []),
    ...(unless.some(isIt) ? [problemAt(placeOf(index, 'unless'), text)] : []),
  ])
}

/** Finds rules that read tokens if the file does not state how to verify them. */
export function findUnverifiable(
  rules: readonly Rule[] = [],
  hasTokens: boolean,
  placeOf: PlaceOfRule,
): Problem[] {
  if (hasTokens) return []
  return [...rules.entries()].flatMap(([index, { policy, when = [], unless = [] }]) => {
    const find = (
      field: 'key' | 'plan' | 'when' | 'unless',
      all: readonly { readonly kind: string }[],
    ): Problem[] => {
      const found = all.find((each): each is { kind: 'jwt'; name: string } => each.kind === 'jwt')
      if (!found) return []
      const text = `has jwt:${found.name}, needs a top-level jwt with jwksUrl, jwksFile or secretFile`
      return [problemAt(placeOf(index, field), text)]
    }
    const plan = policy.plans?.claim === undefined ? [] : [{ kind: 'jwt', name: policy.plans.claim }]
    return [
      ...find('key', singleParts(policy.partition)),
      ...find('plan', plan),
      ...find('when', when),
      ...find('unless', unless),
    ]
  })
}

/**
 * Warns of rules with a header (including `Host`), a cookie or a query parameter in their key or their conditions, because they do not
 * limit a client that leaves it out or changes it. Does not warn if rules by address alone, or for all clients together, count all requests
 * of such a rule, or at least those that the backend answers with 401, as it does for a missing or an invented key.
 */
export function warnOfChosenKeys(rules: readonly Rule[], placeOf: PlaceOfRule): string[] {
  const closing = rules.filter(countsEverybody).map(({ policy, hosts, match, except, when, unless }) => ({
    mode: policy.mode,
    isRouting: isRouting(policy),
    conditions: JSON.stringify([when, unless]),
    hosts,
    match: match.map(toSegments),
    except: except.map(toSegments),
  }))
  const isClosed = (
    { policy, hosts, match, except, when, unless }: Rule,
    isByCondition: boolean,
  ): boolean => {
    const without = JSON.stringify([undefined, undefined])
    const same = JSON.stringify([when, unless])
    const own = except.map(toSegments)
    const candidates = closing.filter(
      (other) =>
        (other.conditions === without || (!isByCondition && other.conditions === same)) &&
        (other.mode === 'enforce' || policy.mode === 'shadow') &&
        (!other.isRouting || isRouting(policy)) &&
        coversHosts(other.hosts, hosts) &&
        other.except.every((pattern) => isCovered(pattern, own)),
    )
    return match.every((pattern) => {
      const segmented = toSegments(pattern)
      return candidates.some((other) => isCovered(segmented, other.match))
    })
  }
  return [...rules.entries()].flatMap(([index, rule]) => {
    const byCondition = wayByCondition(rule)
    const way = byCondition?.way ?? wayAround(rule)
    if (way === undefined || isClosed(rule, byCondition !== undefined)) return []
    const { label } = placeOf(index, byCondition?.field ?? 'key')
    return (
      `${label}: a client can avoid the limit by ${way}; ` +
      'a second rule with the same match and key: ip closes this gap'
    )
  })
}

/** Whether requests over the quota are sent to another backend, so that the rule refuses nothing. */
function isRouting({ over }: Policy): boolean {
  return over !== undefined && 'route' in over
}

/** Describes how a client can avoid a rule; undefined if it cannot, because it can choose no part of the key. */
function wayAround({ policy, hosts }: Rule): string | undefined {
  const hasFewHosts = hosts !== undefined && !hosts.some((host) => host.startsWith('*'))
  const isLast = (part: SinglePart): boolean =>
    policy.partition.some((other) => other === part || (other.kind === 'first' && other.of.at(-1) === part))
  const isChosen = (part: SinglePart): boolean => {
    if (part.kind === 'host') return !hasFewHosts
    // Clients cannot choose the claims of a token, but they can leave out the token.
    return part.kind === 'jwt' ? isLast(part) : nouns[part.kind] !== undefined
  }
  const chosen = singleParts(policy.partition).find(isChosen)
  if (!chosen) return undefined
  // A request without the part counts by address.
  const isOptional = isLast(chosen) && chosen.kind !== 'body'
  const ways = [...(isOptional ? ['leaving out'] : []), ...(chosen.kind === 'jwt' ? [] : ['changing'])]
  return `${ways.join(' or ')} the ${nouns[chosen.kind]}`
}

/** Describes how a client can avoid a rule by what it sends. */
function wayByCondition({
  when = [],
  unless = [],
}: Rule): { readonly field: 'when' | 'unless'; readonly way: string } | undefined {
  const isChosen = ({ kind }: RuleCondition): boolean => kind !== 'jwt' && nouns[kind] !== undefined
  const chosenWhen = when.find((condition) => isChosen(condition) && !selectsFunction(condition))
  const field = chosenWhen ? 'when' : 'unless'
  const chosen = chosenWhen ?? unless.find(isChosen)
  const isToken = when.find((condition) => condition.kind === 'jwt' && !mayBeAbsent(condition))
  if (chosen) return { field, way: `sending another ${nouns[chosen.kind] ?? ''}, or none (${field})` }
  return isToken && { field: 'when', way: 'leaving out the token (when)' }
}

/** Whether the requests that meet the condition ask for something that others do not, as `/?s=TERM` of WordPress asks for a search. */
function selectsFunction(condition: RuleCondition): boolean {
  return condition.kind === 'query' && condition.anyOf.every(({ kind }) => kind === 'present')
}

function mayBeAbsent(condition: RuleCondition): boolean {
  return condition.kind === 'jwt' && condition.anyOf.some(({ kind }) => kind === 'absent')
}

/** Nouns for the parts of a request that clients can choose or leave out; undefined for all other parts. */
const nouns: Readonly<Record<SinglePart['kind'] | RuleCondition['kind'], string | undefined>> = {
  header: 'header',
  host: 'header',
  userAgent: 'header',
  cookie: 'cookie',
  query: 'query parameter',
  body: 'value in the body',
  jwt: 'token',
  ip: undefined,
  network: undefined,
  country: undefined,
  asn: undefined,
  global: undefined,
  path: undefined,
}

/** Whether no client can avoid the rule by what it sends, except by a key that the backend knows. */
function countsEverybody({ policy }: Rule): boolean {
  if (countsInFlight(policy)) return false
  const { countStatus } = policy
  if (countStatus && !includesStatus(countStatus, 401)) return false
  return policy.partition.every(({ kind }) => ofEverybody.has(kind))
}

const ofEverybody: ReadonlySet<PartitionPart['kind']> = new Set(['ip', 'network', 'country', 'asn', 'global'])

/**
 * Whether the wide list contains the hosts of the narrow list. Undefined means every host. Compares names literally: `*.example.com` does
 * not cover `www.example.com`.
 */
function coversHosts(wide: Rule['hosts'], narrow: Rule['hosts']): boolean {
  return wide === undefined || (narrow?.every((host) => wide.includes(host)) ?? false)
}
