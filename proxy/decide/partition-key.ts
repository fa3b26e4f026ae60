import { hash } from 'node:crypto'
import type { PartitionPart, Policy } from '../policy.ts'

/** 128 bits of a hash in base64url, rounded up to whole characters. */
const hashLength = 22

/** The one key of a policy that counts all clients together. */
export const keyOfAll = 'global'

/** The value of a part of a key, in the one spelling that it counts by; empty where it is absent. */
export type ReadPart = (part: PartitionPart) => string

/**
 * Identifies the client that a request counts for under a policy. By address alone, the key is the address or network
 * itself, and of a policy for all clients together it is `global`. Else it is `h:` and a hash of all parts, as headers
 * can carry secrets and hosts can be long; each part is hashed after its length, so that parts are unambiguously
 * separated.
 *
 * @returns undefined where a part is absent: the policy does not apply to the request
 */
export function partitionKeyOf({ partition }: Policy, readPart: ReadPart): string | undefined {
  const kind = onlyKindOf(partition)
  if (kind === 'global') return keyOfAll
  let text = ''
  for (const part of partition) {
    const value = readPart(part)
    if (value === '') return undefined
    if (kind === 'ip') return value
    text += `${value.length}:${value}`
  }
  return `h:${hash('sha256', text, 'base64url').slice(0, hashLength)}`
}

function onlyKindOf(partition: readonly PartitionPart[]): PartitionPart['kind'] | undefined {
  return partition.length === 1 ? partition[0]?.kind : undefined
}
