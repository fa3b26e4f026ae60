import { readsResponseBody, type Policy, type Rule } from '../../policy.ts'
import type { PlaceOfRule } from './table.ts'

/** From so many requests on, a sliding window takes more than 100 kB for one client. */
const MANY_TIMES = 10_000
const BYTES_OF_A_TIME = 10

/** Warns of rules that cost more than they seem to. */
export function warnOfCosts(rules: readonly Rule[], placeOf: PlaceOfRule): string[] {
  return [...rules.entries()].flatMap(([index, rule]) => {
    const { label } = placeOf(index, 'cost')
    const cost = [...warnOfUncompressed(rule), ...warnOfMissingBodies(rule)].map(
      (text) => `${label}: ${text}`,
    )
    return [
      ...warnOfTimes(rule.policy).map((text) => `${placeOf(index, 'requests').label}: ${text}`),
      ...cost,
    ]
  })
}

function warnOfTimes({ algorithm, quota }: Policy): string[] {
  if (algorithm !== 'sliding' || quota <= MANY_TIMES) return []
  const size = `${Math.round((quota * BYTES_OF_A_TIME) / 1000)} kB`
  return [
    `a sliding window keeps the time of each request, up to ${size} for one client; ` +
      'with algorithm: fixed or token-bucket it is less than 200 bytes',
  ]
}

/** Responses that the gateway reads must not be compressed: one path is no reason to send a whole site uncompressed. */
function warnOfUncompressed({ policy, match }: Rule): string[] {
  if (!readsResponseBody(policy) || !match.some(({ path }) => path === '/*')) return []
  return [
    'the gateway requests uncompressed responses to read their bodies, here from the whole site;  ' +
      'limit match to the paths whose responses state their cost',
  ]
}

function warnOfMissingBodies({ policy, match }: Rule): string[] {
  const { cost, quota } = policy
  if (typeof cost?.reserve !== 'object' || cost.reserve.otherwise !== undefined) return []
  if (!match.some(({ methods }) => methods.length === 0 || methods.includes('GET'))) return []
  return [
    `a request without a body, such as GET, reserves all ${quota}; ` +
      'limit match to methods that have one, or set reserve: { json: PATH, else: NUMBER }',
  ]
}
