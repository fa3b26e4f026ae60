import { linesOf } from '../http/fields/header-lines.ts'
import type { ClientRequest } from '../http/message/messages.ts'
import type { Charge } from './limiter.ts'
import { singleParts, type Policy } from '../policy.ts'
import { readPart, type KeySource } from './keys/part-values.ts'
import { maxReadings, partitionKeysOf, type ReadPart } from './keys/partition-key.ts'

const none: readonly Charge[] = []

/** A request, who it is from, and how addresses in it are read. */
export type ChargedRequest = Omit<KeySource, 'headers'> & { readonly request: ClientRequest }

/**
 * The charges of a request: one for each policy that applies to its client, and several where backends would not read the
 * same client. A policy whose partition key needs something that the request does not have does not apply.
 *
 * @returns undefined where an enforced policy's client could be read in too many ways
 */
export function chargesOf(
  policies: readonly Policy[],
  { client, host, target, claims, request, addresses }: ChargedRequest,
): readonly Charge[] | undefined {
  if (policies.length === 0) return none
  const headers = 'stream' in request ? withAllLines(request, policies) : request.headers
  const source = { client, host, target, claims, headers, addresses }
  const read: ReadPart = (part) => readPart(part, source)
  const charges: Charge[] = []
  for (const policy of policies) {
    // The usual rule, for which nothing else is looked at.
    if (isByAddress(policy)) {
      charges.push({ policy, partitionKey: client.prefix })
      continue
    }
    let keys = partitionKeysOf(policy, read)
    if (keys.length > maxReadings) {
      if (policy.mode === 'enforce') return undefined
      keys = keys.slice(0, maxReadings)
    }
    for (const partitionKey of keys) charges.push({ policy, partitionKey })
  }
  return charges
}

function isByAddress({ partition }: Policy): boolean {
  return partition.length === 1 && partition[0]?.kind === 'ip'
}

/**
 * Over HTTP/2 Node keeps only the first line of some fields, such as `authorization`. The backend gets all lines, so all of
 * them are part of the client's key.
 */
function withAllLines(
  { headers, rawHeaders }: ClientRequest,
  policies: readonly Policy[],
): ClientRequest['headers'] {
  let joined = headers
  for (const { partition } of policies) {
    for (const part of singleParts(partition)) {
      if (part.kind !== 'header' || part.name === 'cookie') continue
      const lines = linesOf(rawHeaders, part.name)
      if (lines.length > 1) joined = { ...joined, [part.name]: lines.join(', ') }
    }
  }
  return joined
}
