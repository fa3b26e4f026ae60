import { countsInFlight } from '../../limits/algorithms/registry.ts'
import { problemAt, type Problem } from '../../../shared/settings/problems.ts'
import { requestedUnits, type Rule } from '../../policy.ts'
import { hasBodyKey } from '../../policy/partition.ts'
import type { PlaceOfRule } from './table.ts'

const missing = 'an auth request carries neither the body of the request nor the response'

/**
 * Finds rules that need what an auth request does not have: the response, by which they count, the body of the request, or a way to
 * the backend.
 *
 * @param decisionsPort undefined if nothing is decided for other proxies
 */
export function findUndecidable(
  rules: readonly Rule[] = [],
  decisionsPort: number | undefined,
  placeOf: PlaceOfRule,
): Problem[] {
  if (decisionsPort === undefined) return []
  return [...rules.entries()].flatMap(([index, { policy }]) => {
    const found = (
      field: 'countStatus' | 'cost' | 'concurrency' | 'device' | 'over',
      what: string,
      why = missing,
    ): Problem[] => [
      problemAt(placeOf(index, field), `${what}, which DECISIONS_PORT does not support: ${why}`),
    ]
    return [
      ...(policy.countStatus ? found('countStatus', 'counts by the response') : []),
      ...(policy.cost?.settle ? found('cost', 'has settle, and so counts by the response') : []),
      ...(requestedUnits(policy) ? found('cost', 'has reserve: json, and so reads the body') : []),
      ...(policy.device ? found('device', 'sets a cookie on the response') : []),
      ...(countsInFlight(policy) ? found('concurrency', 'counts until the response ends') : []),
      ...(policy.over && 'route' in policy.over
        ? found('over', 'sends requests to a route', 'auth requests are not forwarded')
        : []),
    ]
  })
}

/** Warns of rules that count by the body: requests of other proxies count by address under them. */
export function warnOfBodyKeys(
  rules: readonly Rule[],
  decisionsPort: number | undefined,
  placeOf: PlaceOfRule,
): string[] {
  if (decisionsPort === undefined) return []
  return [...rules.entries()]
    .filter(([, { policy }]) => hasBodyKey(policy))
    .map(
      ([index]) =>
        `${placeOf(index, 'key').label}: counts by the body, which auth requests (DECISIONS_PORT) do not carry: they count by address`,
    )
}
