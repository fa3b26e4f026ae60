import type { ClientRequest } from '../http/messages.ts'
import type { Charge } from '../limiter/limiter.ts'
import type { Policy } from '../policy.ts'
import { readPart, type KeySource } from './part-values.ts'
import { partitionKeyOf } from './partition-key.ts'

const none: readonly Charge[] = []

/** A request, who it is from, and how addresses in it are read. */
export type ChargedRequest = Omit<KeySource, 'headers'> & { readonly request: ClientRequest }

/**
 * The charges of a request: one for each policy that applies to its client. A policy whose partition key needs a header
 * that the request does not have does not apply.
 */
export function chargesOf(policies: readonly Policy[], charged: ChargedRequest): readonly Charge[] {
  if (policies.length === 0) return none
  const { client, host, request, addresses } = charged
  const headers = 'stream' in request ? withAllLines(request, policies) : request.headers
  const source = { client, host, headers, addresses }
  const charges: Charge[] = []
  for (const policy of policies) {
    const partitionKey = partitionKeyOf(policy, (part) => readPart(part, source))
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
      if (part.kind !== 'header' || part.name === 'cookie') continue
      const lines = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1] === part.name)
      if (lines.length > 1) joined = { ...joined, [part.name]: lines.join(', ') }
    }
  }
  return joined
}
