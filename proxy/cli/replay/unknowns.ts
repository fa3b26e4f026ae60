import { countsInFlight } from '../../limits/algorithms/registry.ts'
import { requestedUnits, type ListEntry, type Rule, type RuleCondition } from '../../policy.ts'
import { partName, singleParts, type SinglePart } from '../../policy/partition.ts'
import { planSource } from '../../policy/plans.ts'
import type { LoggedRequest } from './logs/logged-request.ts'

/** Inputs of a rule that a log may lack. */
export type Need = {
  /** The name of the input, as in the table: `header:x-api-key`, `hosts`, `cost`. */
  readonly what: string
  readonly isKnown: (request: LoggedRequest) => boolean
}

const never = (): boolean => false

/** Returns the inputs of a rule, other than the method, the path and the client's address. */
export function needsOf(rule: Rule): Need[] {
  const { policy, hosts, allowList = [], overrides = [] } = rule
  const needs: Need[] = conditionNeeds(rule)
  if (hosts) needs.push({ what: 'hosts', isKnown: ({ host }) => host !== undefined })
  needs.push(...singleParts(policy.partition).flatMap(partNeeds))
  for (const name of headersOf([...allowList, ...overrides.flatMap(({ clients }) => clients)]))
    needs.push({ what: `lists: header ${name}`, isKnown: (request) => knowsHeader(request, name) })
  if (policy.countStatus) needs.push({ what: 'countStatus', isKnown: ({ status }) => status !== undefined })
  if (policy.plans) needs.push({ what: `plan: ${planSource(policy.plans)}`, isKnown: never })
  if (policy.device) needs.push({ what: 'device', isKnown: never })
  if (countsInFlight(policy))
    needs.push({ what: 'concurrency', isKnown: ({ durationMs }) => durationMs !== undefined })
  if (policy.cost?.settle || requestedUnits(policy)) needs.push({ what: 'cost', isKnown: never })
  return needs
}

function partNeeds(part: SinglePart): Need[] {
  const what = partName(part)
  switch (part.kind) {
    case 'host':
      return [{ what, isKnown: ({ host }) => host !== undefined }]
    case 'header':
      return [{ what, isKnown: (request) => knowsHeader(request, part.name) }]
    case 'cookie':
      return [{ what, isKnown: (request) => knowsHeader(request, 'cookie') }]
    case 'query':
      return [{ what, isKnown: ({ knows }) => knows.query }]
    case 'jwt':
    case 'body':
      return [{ what, isKnown: never }]
    case 'ip':
    case 'network':
    case 'country':
    case 'asn':
    case 'global':
    case 'path':
      return []
  }
}

/** Returns the inputs of conditions, such as `when: jwt:plan`. */
function conditionNeeds({ when = [], unless = [] }: Rule): Need[] {
  const needsIn = (field: string, conditions: readonly RuleCondition[]): Need[] =>
    conditions.flatMap((condition) => {
      const what = `${field}: ${'name' in condition ? `${condition.kind}:${condition.name}` : condition.kind}`
      switch (condition.kind) {
        case 'header':
          return { what, isKnown: (request) => knowsHeader(request, condition.name) }
        case 'cookie':
          return { what, isKnown: (request) => knowsHeader(request, 'cookie') }
        case 'userAgent':
          return { what, isKnown: (request) => knowsHeader(request, 'user-agent') }
        case 'query':
          return { what, isKnown: ({ knows }) => knows.query }
        case 'jwt':
          return { what, isKnown: never }
        case 'host':
          return { what, isKnown: ({ host }) => host !== undefined }
        case 'ip':
        case 'country':
        case 'asn':
          return []
      }
    })
  return [...needsIn('when', when), ...needsIn('unless', unless)]
}

/** Whether the log has the header, or shows that it is missing. Values that the log hides as secrets are unknown. */
function knowsHeader({ headers, knows }: LoggedRequest, name: string): boolean {
  if (headers[name] !== undefined) return true
  if (knows.headers === 'all') return !redacted.has(name)
  return knows.headers.has(name)
}

/** Headers that Caddy does not log by default. */
const redacted = new Set(['cookie', 'set-cookie', 'authorization', 'proxy-authorization'])

function headersOf(entries: readonly ListEntry[]): Set<string> {
  return new Set(entries.flatMap((entry) => (entry.kind === 'header' ? [entry.name] : [])))
}
