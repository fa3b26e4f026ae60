import type { ClientAddress } from './client-address.ts'
import type { Charge } from './limiter/limiter.ts'
import { partitionKeyOf } from './partition.ts'
import type { Policy } from './policy.ts'
import type { ClientRequest } from './reply.ts'

/**
 * The questions to ask for a request: one for each policy that applies to this client. A policy whose partition key
 * needs a header that the request does not carry does not apply.
 */
export function chargesOf(
  policies: readonly Policy[],
  client: ClientAddress,
  headers: ClientRequest['headers'],
): Charge[] {
  const charges: Charge[] = []
  for (const policy of policies) {
    const partitionKey = partitionKeyOf(policy, client, headers)
    if (partitionKey !== undefined) charges.push({ policy, partitionKey })
  }
  return charges
}
