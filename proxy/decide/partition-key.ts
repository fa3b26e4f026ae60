import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { AddressReader, ClientAddress } from '../request/client-address.ts'
import { canonicalCredentials, withoutBlanksAround } from './credentials.ts'
import type { PartitionPart, Policy } from '../policy.ts'
import { clientAddressHeaders } from '../http/proxy-headers.ts'

/** 128 bits of a hash in base64url, rounded up to whole characters. */
const hashLength = 22

/** What a request is told apart from those of other clients by. */
export type KeySource = {
  readonly client: ClientAddress
  readonly headers: IncomingHttpHeaders
  readonly addresses: Pick<AddressReader, 'readClientField'>
}

/**
 * Identifies the client that a request counts for under a policy. By address alone, the key is the address or prefix
 * itself. With a header, it is `h:` and a hash of all parts, as headers can carry secrets; each part is hashed after
 * its length, so that parts are unambiguously separated. Equivalent spellings are one client; the backend gets the
 * header as it was sent.
 *
 * @returns undefined where a header is absent or empty: the policy does not apply to the request
 */
export function partitionKeyOf(policy: Policy, source: KeySource): string | undefined {
  const { partition } = policy
  if (partition.length === 1 && partition[0]?.kind === 'ip') return source.client.prefix
  let text = ''
  for (const part of partition) {
    const value = readPart(part, source)
    if (value === '') return undefined
    text += `${value.length}:${value}`
  }
  return `h:${hash('sha256', text, 'base64url').slice(0, hashLength)}`
}

function readPart(part: PartitionPart, { client, headers, addresses }: KeySource): string {
  if (part.kind === 'ip') return client.prefix
  // A field may be named as something that every object has.
  const value = Object.hasOwn(headers, part.name) ? headers[part.name] : undefined
  const text = typeof value === 'string' ? value : (value?.join(', ') ?? '')
  if (part.name === 'authorization') return canonicalCredentials(text)
  const address = addressHeaders.has(part.name) ? addresses.readClientField(text) : undefined
  // Blanks around a value are no part of it (RFC 9110 section 5.5).
  return address?.prefix ?? withoutBlanksAround(text)
}

const addressHeaders = new Set(clientAddressHeaders)
