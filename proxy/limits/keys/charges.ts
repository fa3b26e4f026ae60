import { errors } from '../../../shared/error-replies.ts'
import type { Policy } from '../../policy.ts'
import { hasBodyKey } from '../../policy/partition.ts'
import type { UnreadKey } from '../../telemetry/telemetry.ts'
import type { Charge } from '../limiter.ts'
import { chargesByBody } from './body/body-charges.ts'
import { readPart, type KeySource } from './part-values.ts'
import { MAX_READINGS, partitionKeysOf, type ReadPart } from './partition-key.ts'

/**
 * Returns the charges of a request: one for each policy that applies, and several if backends could read different clients from the
 * request, or if its body is a batch for several clients. A policy does not apply if the request lacks a part of its partition key.
 *
 * @returns undefined if the client under an enforced policy could be read in too many ways
 */
export function chargesOf(
  policies: readonly Policy[],
  source: KeySource,
  context: { onUnreadKey(policy: Policy, reason: UnreadKey): void },
): readonly Charge[] | undefined {
  if (policies.length === 0) return noCharges
  const read: ReadPart = (part) => readPart(part, source)
  const address = source.client.prefix
  const charges: Charge[] = []
  for (const policy of policies) {
    // The usual rule needs nothing but the address.
    if (isByAddress(policy)) {
      charges.push({ policy, partitionKey: address })
      continue
    }
    if (source.body && hasBodyKey(policy)) {
      const counted = chargesByBody(policy, read, source.body, address, context)
      if (!counted) return undefined
      charges.push(...counted)
      continue
    }
    let keys = partitionKeysOf(policy, read)
    if (keys.length > MAX_READINGS) {
      if (policy.mode === 'enforce') return undefined
      keys = keys.slice(0, MAX_READINGS)
    }
    for (const partitionKey of keys) charges.push({ policy, partitionKey })
  }
  return charges
}

function isByAddress({ partition }: Policy): boolean {
  return partition.length === 1 && partition[0]?.kind === 'ip'
}

const noCharges: readonly Charge[] = []

/** The rejection of a request for which `chargesOf` returns undefined. */
export const ambiguousKey = {
  rejection: 'ambiguous-key',
  reply: errors.badRequest,
  reason: 'the key of a rule can be read in more than 8 ways, or the body counts for too many clients',
} as const
