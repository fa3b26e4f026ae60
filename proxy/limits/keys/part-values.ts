import type { IncomingHttpHeaders } from 'node:http'
import { alphanumerics, createCharacterFilter } from '../../http/fields/kept-characters.ts'
import { clientAddressHeaders } from '../../http/fields/removed-headers.ts'
import { withoutBlanksAround } from '../../http/fields/trim-blanks.ts'
import type { PrefixLengths, SinglePart } from '../../policy/partition.ts'
import type { AddressReader, ClientAddress } from '../../request/addresses/client-address.ts'
import { formatNetwork, parseAddress } from '../../request/addresses/ip-address.ts'
import { UNKNOWN, type Geo } from '../../request/addresses/geo/geo.ts'
import { comparableHost } from '../../request/host.ts'
import { cookieValues } from '../../request/values/cookie-values.ts'
import { comparableTexts } from '../../request/values/comparable/comparable-text.ts'
import { mayRespellQuery } from '../../request/values/charsets.ts'
import { numberValues } from '../../request/values/number-values.ts'
import { queryValues } from '../../request/values/query-values.ts'
import type { Target } from '../../request/target/target.ts'
import type { KeyBody } from './body/key-body.ts'
import type { ReadClaims } from './tokens/token-reader.ts'
import { createPathValues } from '../rules/path-values.ts'
import { MAX_READINGS, tooManyValues } from './partition-key.ts'
import { credentialKeys, tokenKeys } from './credentials/credential-keys.ts'

/** The parts of a request that can identify its client. */
export type KeySource = {
  readonly client: ClientAddress
  /** The host as it is forwarded. */
  readonly host: string
  readonly target: Target
  /** Countries and autonomous systems; undefined without databases. */
  readonly geo?: Geo | undefined
  /** The request's verified tokens; undefined if it has none. */
  readonly claims: ReadClaims | undefined
  readonly headers: IncomingHttpHeaders
  readonly addresses: Pick<AddressReader, 'readClientField'>
  /** The body; undefined if no rule counts by it. */
  readonly body?: KeyBody | undefined
}

/**
 * Reads a part of a key from a request. Equivalent spellings have the same value; the backend gets the part as sent.
 *
 * @returns empty if the part is absent; several values if backends would read different ones
 */
export function readPart(part: SinglePart, source: KeySource): readonly string[] {
  const { headers, target } = source
  switch (part.kind) {
    case 'ip':
      return [source.client.prefix]
    case 'network':
      return networkValues(source.client.address, part)
    case 'country':
    case 'asn':
      return [source.geo?.find(part.kind, source.client.address) ?? UNKNOWN]
    case 'global':
      return [part.kind]
    case 'host':
      return [comparableHost(source.host)]
    case 'header':
      return headerValues(part.name, sentValue(headers, part.name), source.addresses, part.isNumber)
    case 'cookie':
      return comparableValues(
        cookieValues(sentValue(headers, 'cookie'), part.name, MAX_READINGS, part.isNumber),
      )
    case 'query':
      return target.forwardTarget.includes('?') &&
        mayRespellQuery(sentValue(headers, 'content-type'), target.forwardTarget)
        ? tooManyValues
        : comparableValues(queryValues(target.forwardTarget, part.name, MAX_READINGS, part.isNumber))
    case 'jwt':
      return claimValues(part.name, source.claims)
    case 'path':
      return pathValuesOf(part)(target)
    case 'body':
      return source.body?.readPart(part) ?? []
  }
}

/** Returns the network of an address. */
function networkValues(text: string, lengths: PrefixLengths): readonly string[] {
  const address = parseAddress(text)
  return address ? [formatNetwork(address, lengths)] : []
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
 * Returns the values of a header in the spelling that they count by; several if backends would read different credentials or numbers.
 *
 * @param name lower-case
 * @param isNumber the backend reads the value as a whole number
 * @returns empty if the value is empty
 */
export function headerValues(
  name: string,
  sent: string,
  addresses: Pick<AddressReader, 'readClientField'>,
  isNumber = false,
): readonly string[] {
  if (name === 'authorization') return credentialKeys(sent)
  const address = addressHeaders.has(name) ? addresses.readClientField(name, sent) : undefined
  if (address) return [address.prefix]
  // Blanks around a value are not part of it (RFC 9110 section 5.5).
  const text = withoutBlanksAround(sent).toLowerCase()
  const [number, ...others] = numberValues(text, isNumber)
  // Letter case matters in values other than numbers.
  return number === undefined || number === text ? tokenKeys(sent) : [number, ...others]
}

/**
 * Returns the values of a cookie or a parameter in the spelling that they count by: accounts as databases compare them, and tokens as their
 * decoders read them. Drops the signature of a token: of a JSON Web Token, of an encrypted one (JWE, as of Auth.js), and of the sessions of
 * Flask. A long value counts by its letters and digits only, because decoders of base64 skip other characters, or take `+` for `-`. No two
 * random values of this length differ in those alone.
 *
 * @param values in the form of `valuesOf`
 */
export function comparableValues(values: readonly string[]): readonly string[] {
  // The request is rejected: further values may not have been read.
  if (values.length > MAX_READINGS || values.every((value) => isUsual.test(value))) return values
  return [
    ...new Set(
      values.flatMap((value) => comparableTexts(value).map((text) => comparableToken(text || value))),
    ),
  ]
}

function comparableToken(value: string): string {
  const token = signedToken.exec(value)?.[0] ?? encryptedToken.exec(value)?.slice(1).join('.') ?? value
  const significant = token.length < LONG_WORD ? token : onlySignificant(token)
  return significant.length < LONG_WORD ? token : significant
}

/** Matches values that are compared as they are: short, without two spaces in succession, and without the beginning of a token. */
const isUsual = /^(?!\.?e[jy])(?:[!-~]| (?! )){0,39}$/
/** Header and payload of a JSON Web Token, or payload and time of a session of Flask, which begins with a dot if it is compressed. */
const signedToken = /^\.?e[jy][^.]{4,}\.[^.]+(?=\.)/
/** The parts of an encrypted token before its tag. The last characters of the two that are in base64 have bits that no decoder reads. */
const encryptedToken = /^(ey[^.]{4,})\.\.([^.]+)[^.]\.([^.]+)[^.]\./
/** Minimum letters and digits of a value that is identified by them alone. */
const LONG_WORD = 40
const onlySignificant = createCharacterFilter(alphanumerics)

function claimValues(name: string, claims: ReadClaims | undefined): readonly string[] {
  if (claims === undefined) return []
  if (claims === 'too-many') return tooManyValues
  const values = new Set(claims.map((each) => each.get(name) ?? ''))
  values.delete('')
  return [...values]
}

const addressHeaders = new Set(clientAddressHeaders)

function sentValue(headers: IncomingHttpHeaders, name: string): string {
  // A header may have the name of an inherited property of objects.
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined
  return typeof value === 'string' ? value : (value?.join(', ') ?? '')
}
