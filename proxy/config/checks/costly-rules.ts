import { algorithmOf } from '../../limits/algorithms/registry.ts'
import { readsResponseBody, type Rule } from '../../policy.ts'
import type { PlaceOfRule } from './table.ts'

/** Warns of rules that cost more than they seem to. */
export function warnOfCosts(rules: readonly Rule[], placeOf: PlaceOfRule): string[] {
  return [...rules.entries()].flatMap(([index, rule]) => {
    const { label } = placeOf(index, 'cost')
    const warning = algorithmOf(rule.policy).rule.warning?.(rule.policy)
    const cost = [...warnOfUncompressed(rule), ...warnOfMissingBodies(rule)].map(
      (text) => `${label}: ${text}`,
    )
    return [...(warning === undefined ? [] : [`${placeOf(index, 'requests').label}: ${warning}`]), ...cost]
  })
}

/** Warns of rules that make a whole site uncompressed: the gateway requests uncompressed responses in order to read their bodies. */
function warnOfUncompressed({ policy, match }: Rule): string[] {
  if (!readsResponseBody(policy) || !match.some(({ path }) => path === '/*')) return []
  return [
    'the gateway requests uncompressed responses to read their bodies, here from the whole site; ' +
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
