import type { IncomingHttpHeaders } from 'node:http'
import { clientAddressHeaders } from '../http/proxy-headers.ts'
import type { SinglePart } from '../policy.ts'
import type { AddressReader, ClientAddress } from '../request/client-address.ts'
import { comparableHost } from '../request/host.ts'
import { cookieValues } from '../request/values/cookie-values.ts'
import { queryValues } from '../request/values/query-values.ts'
import type { Target } from '../request/target.ts'
import type { Claims } from '../tokens/token-claims.ts'
import { createPathValues } from '../rules/path-values.ts'
import { mostReadings } from './partition-key.ts'
import { canonicalCredentials, withoutBlanksAround } from './credentials.ts'

/** What of a request can identify its client. */
export type KeySource = {
  readonly client: ClientAddress
  /** As forwarded. */
  readonly host: string
  readonly target: Target
  /** Of the request's token; undefined where it has none, or none that is verified. */
  readonly claims: Claims | undefined
  readonly headers: IncomingHttpHeaders
  readonly addresses: Pick<AddressReader, 'readClientField'>
}

/**
 * Reads a part of a key from a request. Equivalent spellings come out as one; the backend gets them as they were sent.
 *
 * @returns none where the part is absent; several where backends would not read the same value
 */
export function readPart(part: SinglePart, source: KeySource): readonly string[] {
  const { headers, target } = source
  switch (part.kind) {
    case 'ip':
      return [source.client.prefix]
    case 'global':
      return [part.kind]
    case 'host':
      return [comparableHost(source.host)]
    case 'header': {
      const value = headerValue(part.name, sentValue(headers, part.name), source.addresses)
      return value === '' ? [] : [value]
    }
    case 'cookie':
      return cookieValues(sentValue(headers, 'cookie'), part.name, mostReadings)
    case 'query':
      return queryValues(target.forwardTarget, part.name, mostReadings)
    case 'jwt': {
      const value = source.claims?.get(part.name) ?? ''
      return value === '' ? [] : [value]
    }
    case 'path':
      return pathValuesOf(part)(target)
  }
}

const pathValues = new WeakMap<SinglePart, ReturnType<typeof createPathValues>>()

function pathValuesOf(part: SinglePart & { kind: 'path' }): ReturnType<typeof createPathValues> {
  const known = pathValues.get(part)
  if (known) return known
  const made = createPathValues(part.patterns, part.name)
  pathValues.set(part, made)
  return made
}

/**
 * The value of a header in the one spelling that it counts by.
 *
 * @param name lower-case
 */
export function headerValue(
  name: string,
  sent: string,
  addresses: Pick<AddressReader, 'readClientField'>,
): string {
  if (name === 'authorization') return canonicalCredentials(sent)
  const address = addressHeaders.has(name) ? addresses.readClientField(sent) : undefined
  // Blanks around a value are no part of it (RFC 9110 section 5.5).
  return address?.prefix ?? withoutBlanksAround(sent)
}

const addressHeaders = new Set(clientAddressHeaders)

function sentValue(headers: IncomingHttpHeaders, name: string): string {
  // A header may be named as something that every object has.
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined
  return typeof value === 'string' ? value : (value?.join(', ') ?? '')
}
