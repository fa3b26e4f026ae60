import type { ClientRequest } from '../http/messages.ts'
import type { Charge } from '../limiter/limiter.ts'
import type { Policy } from '../policy.ts'
import type { AddressReader, ClientAddress } from '../request/client-address.ts'
import { partitionKeyOf } from './partition-key.ts'

const none: readonly Charge[] = []

/** A request, and how addresses in it are read. */
export type ChargedRequest = {
  readonly client: ClientAddress
  readonly request: ClientRequest
  readonly addresses: Pick<AddressReader, 'readClientField'>
}

/**
 * The charges of a request: one for each policy that applies to its client. A policy whose partition key needs a header
 * that the request does not have does not apply.
 */
export function chargesOf(
  policies: readonly Policy[],
  { client, request, addresses }: ChargedRequest,
): readonly Charge[] {
  if (policies.length === 0) return none
  const headers = 'stream' in request ? withAllLines(request, policies) : request.headers
  const source = { client, headers, addresses }
  const charges: Charge[] = []
  for (const policy of policies) {
    const partitionKey = partitionKeyOf(policy, source)
    if (partitionKey !== undefined) charges.push({ policy, partitionKey })
  }
  return charges
}

/**
 * Over HTTP/2 Node keeps only the first line of some fields, such as `authorization`. The backend gets them all, so by all
 * of them clients are told apart.
 */
function withAllLines(
  { headers, rawHeaders }: ClientRequest,
  policies: readonly Policy[],
): ClientRequest['headers'] {
  let joined = headers
  for (const { partition } of policies) {
    for (const part of partition) {
      if (part.kind === 'ip' || part.name === 'cookie') continue
      const lines = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1] === part.name)
      if (lines.length > 1) joined = { ...joined, [part.name]: lines.join(', ') }
    }
  }
  return joined
}
