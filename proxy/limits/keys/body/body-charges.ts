import { reservedUnits, type Policy } from '../../../policy.ts'
import { countsInFlight } from '../../algorithms/registry.ts'
import type { Charge } from '../../limiter.ts'
import type { ReadPart } from '../partition-key.ts'
import { bodyKeysOf } from './body-keys.ts'
import type { UnreadKey } from '../../../telemetry/telemetry.ts'
import type { KeyBody } from './key-body.ts'

/**
 * Returns the charges of a request under a policy whose key is in the body. Requests of a batch that count for the same client are a single
 * charge, so that either all of them pass or all are refused.
 *
 * @param address the key for requests whose body cannot be read
 * @returns undefined if a client under an enforced policy could be read in too many ways, or there are too many clients
 */
export function chargesByBody(
  policy: Policy,
  read: ReadPart,
  body: KeyBody,
  address: string,
  context: { onUnreadKey(policy: Policy, reason: UnreadKey): void },
): readonly Charge[] | undefined {
  const keys = bodyKeysOf(policy, read, body, address)
  if (!keys) return policy.mode === 'enforce' ? undefined : [{ policy, partitionKey: address }]
  if (keys.unread) context.onUnreadKey(policy, keys.unread)
  // A batch counts as one request in flight.
  const hasUnits = !countsInFlight(policy)
  const { isBatch } = body
  return Array.from(keys.requests, ([partitionKey, requests]) => ({
    policy,
    partitionKey,
    ...(requests > 1 && hasUnits && { units: requests * reservedUnits(policy) }),
    ...(keys.extra.has(partitionKey) && { isExtra: true }),
    ...(isBatch && { isBatch }),
  }))
}
