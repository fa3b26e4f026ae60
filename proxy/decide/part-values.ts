import type { IncomingHttpHeaders } from 'node:http'
import { clientAddressHeaders } from '../http/proxy-headers.ts'
import type { SinglePart } from '../policy.ts'
import type { AddressReader, ClientAddress } from '../request/client-address.ts'
import { comparableHost } from '../request/host.ts'
import { cookieValues } from '../request/values/cookie-values.ts'
import { numberValues } from '../request/values/number-values.ts'
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
      const sent = sentValue(headers, part.name)
      return headerValues(part.name, sent, source.addresses, part.isNumber)
    }
    case 'cookie':
      return cookieValues(sentValue(headers, 'cookie'), part.name, mostReadings, part.isNumber)
    case 'query':
      return queryValues(target.forwardTarget, part.name, mostReadings, part.isNumber)
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
  const made = createPathValues(part.patterns, part.name, part.isNumber)
  pathValues.set(part, made)
  return made
}

/**
 * The value of a header in the spelling that it counts by; several where it is a number that backends read in several ways.
 *
 * @param name lower-case
 * @param isNumber the backend takes it for a whole number
 * @returns none where it is empty
 */
export function headerValues(
  name: string,
  sent: string,
  addresses: Pick<AddressReader, 'readClientField'>,
  isNumber = false,
): readonly string[] {
  const address = addressHeaders.has(name) ? addresses.readClientField(sent) : undefined
  if (address) return [address.prefix]
  // Blanks around a value are no part of it (RFC 9110 section 5.5).
  const value = name === 'authorization' ? canonicalCredentials(sent) : withoutBlanksAround(sent)
  if (value === '') return []
  const text = value.toLowerCase()
  const [number, ...others] = numberValues(text, isNumber)
  // Letter case matters in what is no number.
  return number === undefined || number === text ? [value] : [number, ...others]
}

const addressHeaders = new Set(clientAddressHeaders)

function sentValue(headers: IncomingHttpHeaders, name: string): string {
  // A header may be named as something that every object has.
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined
  return typeof value === 'string' ? value : (value?.join(', ') ?? '')
}
