import { countsInFlight } from '../../limits/algorithms/registry.ts'
import { problemAt, type Problem } from '../../../shared/settings/problems.ts'
import { requestedUnits, type Rule } from '../../policy.ts'
import { hasBodyKey } from '../../policy/partition.ts'
import type { PlaceOfRule } from './table.ts'

const missing = 'an auth request carries neither the body of the request nor the response'

/**
 * Finds rules that cannot decide about auth requests, because they need the response, the body of the request, or a backend to forward to.
 *
 * @param decisionsPort undefined if the gateway does not answer auth requests
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

/** Warns of rules that count by the body. Auth requests carry no body, so they count by address. */
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
