import { errors, type ErrorReply } from '../../../shared/error-replies.ts'
import { partsOf } from '../../limits/clients/client-entry.ts'
import { headerValues, withoutSignatures } from '../../limits/keys/part-values.ts'
import { bodyValues } from '../../limits/keys/body/key-body.ts'
import { isHashedKey, keyOfAll, partitionKeysOf } from '../../limits/keys/partition-key.ts'
import type { Charge } from '../../limits/limiter.ts'
import type { Policy } from '../../policy.ts'
import { hasBodyKey, partName, singleParts, type PrefixLengths } from '../../policy/partition.ts'
import { readAuthority } from '../../request/authority.ts'
import {
  unknownClient,
  type AddressReader,
  type ClientAddress,
} from '../../request/addresses/client-address.ts'
import { UNKNOWN } from '../../request/addresses/geo/geo.ts'
import { comparableHost } from '../../request/host.ts'
import {
  formatNetwork,
  parseAddress,
  parseAddressRange,
  parseClientRange,
  type AddressRange,
} from '../../request/addresses/ip-address.ts'
import { valuesOf } from '../../request/values/decoded-values.ts'
import { pathValueOf } from '../../limits/rules/path-values.ts'

/** A client as an operator names it: the parts that rules count by, or what a list of limited clients calls it. */
type ClientName =
  | { readonly key: string }
  | {
      readonly key?: undefined
      /** By the lower-case names of parts, in the spelling that they count by. */
      readonly values: ReadonlyMap<string, string>
      /** The address or the network that is named as `ip`. */
      readonly range: AddressRange | undefined
    }

/**
 * Finds what an operator asks about: `client` is an object with a value for each part of the rule's `key`, such as
 * `{"ip": "192.0.2.7"}` or `{"ip": "2001:db8::1", "header:x-api-key": "…"}`, or `{"id": "h:…"}` as lists of limited
 * clients have it where a value is secret. A mere text is an address, or the one part that the policy counts by.
 *
 * @param policy without one, all policies that the client can be counted under
 * @returns at least one charge, or the error to answer with
 */
export function chargesOfClient(
  client: unknown,
  policy: Policy | undefined,
  policies: readonly Policy[],
  addresses: AddressReader,
): readonly Charge[] | ErrorReply {
  const name = readName(typeof client === 'string' ? { [onlyPartOf(policy)]: client } : client, addresses)
  if ('body' in name) return name
  const candidates = policy ? [policy] : policies
  const charges = candidates.flatMap((candidate): Charge[] => {
    const partitionKey = keyUnder(candidate, name, policy !== undefined)
    return partitionKey === undefined ? [] : [{ policy: candidate, partitionKey }]
  })
  return charges.length > 0 ? charges : whyNobody(name)
}

/** The address and headers of a request by the client that an operator names, as far as the operator names them. */
export function requestOfClient(
  client: unknown,
  policy: Policy | undefined,
  addresses: AddressReader,
): { readonly client: ClientAddress; readonly rawHeaders: readonly string[] } {
  const named = typeof client === 'string' ? { [onlyPartOf(policy)]: client } : client
  const parts = Object.entries(typeof named === 'object' && named !== null ? named : {}).filter(isNamed)
  const address = parts.find(([part]) => part.toLowerCase() === 'ip')?.[1].split('/', 1)[0]
  return {
    client: addresses.readPeer(address)?.client ?? unknownClient,
    rawHeaders: parts.flatMap(([part, value]) =>
      part.toLowerCase().startsWith('header:')
        ? [part.slice('header:'.length).toLowerCase(), asBytes(value)]
        : [],
    ),
  }
}

function isNamed(part: [string, unknown]): part is [string, string] {
  return typeof part[1] === 'string'
}

/**
 * The keys that an operator means where it is about all rules: of an address that address, whether a rule counts by it
 * or not; otherwise those under the rules that count by just these parts.
 *
 * @returns at least one, each once, with what it is made of (`partsOf`), or the error to answer with
 */
export function keysOfClient(
  client: unknown,
  policies: readonly Policy[],
  addresses: AddressReader,
): readonly NamedKey[] | ErrorReply {
  const name = readName(typeof client === 'string' ? { ip: client } : client, addresses)
  if ('body' in name) return name
  if (name.key === undefined) {
    if (name.values.has('global')) return errors.clientGlobal
    const address = name.values.get('ip')
    if (address !== undefined && name.values.size === 1) return [{ partitionKey: address, parts: '' }]
  }
  const keys = new Map<string, NamedKey>()
  for (const policy of policies) {
    const partitionKey = keyUnder(policy, name, true)
    if (partitionKey === undefined) continue
    const parts = partsOf(policy, partitionKey)
    keys.set(`${parts} ${partitionKey}`, { partitionKey, parts })
  }
  return keys.size > 0 ? [...keys.values()] : whyNobody(name)
}

function whyNobody(name: ClientName): ErrorReply {
  const isNetwork = name.key === undefined && name.range !== undefined && !name.values.has('ip')
  return isNetwork ? errors.clientIsNetwork : errors.clientPartsDiffer
}

type NamedKey = { readonly partitionKey: string; readonly parts: string }

/** How the operator's interface names a client by its partition key: readable, or by its hash. */
export function describeKey(partitionKey: string): object {
  if (isHashedKey(partitionKey)) return { id: partitionKey }
  return partitionKey === keyOfAll ? { global: true } : { ip: partitionKey }
}

/** Visible characters, with blanks between them (RFC 9110 section 5.5). */
const fieldValue = /^[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?$/
const MAX_VALUE_LENGTH = 8 * 1024

function readName(client: unknown, addresses: AddressReader): ClientName | ErrorReply {
  if (typeof client !== 'object' || client === null || Array.isArray(client)) return errors.clientUnreadable
  const entries = Object.entries(client)
  if (entries.length === 0 || entries.length > 32) return errors.clientUnreadable
  const values = new Map<string, string>()
  let range: AddressRange | undefined
  for (const [given, value] of entries) {
    const part = given.toLowerCase()
    if (part === 'id' && entries.length === 1 && typeof value === 'string' && isHashedKey(value))
      return { key: value }
    if (part === 'ip' && typeof value === 'string') range = parseClientRange(value)
    const read = readValue(part, value, addresses)
    if (read === errors.clientIsNetwork && entries.length === 1) continue
    if (typeof read !== 'string') return read
    if (read === '' || values.has(part)) return errors.clientUnreadable
    values.set(part, read)
  }
  return { values, range }
}

/** The value of a part in the spelling that it counts by. */
function readValue(part: string, value: unknown, addresses: AddressReader): string | ErrorReply {
  if (part === 'global' && value === true) return part
  if (typeof value !== 'string' || value.length > MAX_VALUE_LENGTH) return errors.clientUnreadable
  if (part === 'ip') return readAddress(value, addresses) ?? whyNoAddress(value)
  if (part.startsWith('ip/')) return readNetwork(part, value) ?? errors.clientAddressUnreadable
  if (part === 'country' || part === 'asn') return value.toUpperCase().replace('UNKNOWN', UNKNOWN)
  if (part === 'host') return comparableHost(readAuthority(value) ?? '')
  if (part.startsWith('jwt:')) return value
  if (part.startsWith('path:')) return pathValueOf(value)
  const bytes = asBytes(value)
  if (part.startsWith('body:')) return firstOf(bodyValues(bytes, false))
  if (part.startsWith('query:'))
    return firstOf(withoutSignatures(valuesOf(bytes, { isQuoted: false, isNumber: false })))
  if (!fieldValue.test(bytes)) return errors.clientUnreadable
  if (part.startsWith('cookie:'))
    return firstOf(withoutSignatures(valuesOf(bytes, { isQuoted: true, isNumber: false })))
  // Of credentials in an unusual spelling the reading that comes first.
  if (part.startsWith('header:')) return firstOf(headerValues(part.slice('header:'.length), bytes, addresses))
  return errors.clientUnreadable
}

/** As Node reads a header: a character for each byte that was sent. */
function asBytes(value: string): string {
  return Buffer.from(value).toString('latin1')
}

/** A value as an operator writes it, which has exactly one reading. */
function firstOf([value = '']: readonly string[]): string {
  return value
}

function whyNoAddress(value: string): ErrorReply {
  return parseAddressRange(value) ? errors.clientIsNetwork : errors.clientAddressUnreadable
}

/** The key that an address counts under. The input may be that key already, such as `2001:db8::/64`, as lists show it. */
function readAddress(text: string, addresses: AddressReader): string | undefined {
  const network = addresses.readPeer(text.split('/', 1)[0])?.client.prefix
  return parseAddress(text) || network === text ? network : undefined
}

/** The network of an address, or a network as lists show it. */
function readNetwork(part: string, text: string): string | undefined {
  const [, ipv4, ipv6] = part.split('/', 3).map(Number)
  const range = parseClientRange(text)
  return range && ipv4 !== undefined && ipv6 !== undefined ? networkIn(range, { ipv4, ipv6 }) : undefined
}

/** Undefined if the range is larger than a network of this length. */
function networkIn({ address, bits }: AddressRange, lengths: PrefixLengths): string | undefined {
  const network = formatNetwork(address, lengths)
  const length = parseAddressRange(network)?.bits ?? 128
  return bits === 128 || bits === length ? network : undefined
}

/** @param isExact whether the client may have no parts that the policy does not count by */
function keyUnder(policy: Policy, name: ClientName, isExact: boolean): string | undefined {
  if (name.key !== undefined) return isHashed(policy) ? name.key : undefined
  const { values, range } = name
  // What could not be read in a body.
  if (hasBodyKey(policy) && values.size === 1 && values.has('ip')) return values.get('ip')
  const all = singleParts(policy.partition)
  const parts = new Set(all.map((part) => partName(part).toLowerCase()))
  const hasNetwork = all.some(({ kind }) => kind === 'network')
  if (hasNetwork) parts.add('ip')
  else if (range && !values.has('ip')) return undefined
  if (isExact && ![...values.keys()].every((part) => parts.has(part))) return undefined
  const [key] = partitionKeysOf(policy, (part) => {
    const ofNetwork = part.kind === 'network' && range ? networkIn(range, part) : undefined
    const value = values.get(partName(part).toLowerCase()) ?? ofNetwork
    return value === undefined ? [] : [value]
  })
  return key
}

/** Whether the policy's keys are hashes of values that may be secret. */
function isHashed({ partition }: Policy): boolean {
  return (
    partition.length > 1 ||
    partition.some(({ kind }) => kind !== 'ip' && kind !== 'network' && kind !== 'global')
  )
}

function onlyPartOf(policy: Policy | undefined): string {
  const [only, ...others] = policy?.partition ?? []
  return only && only.kind !== 'first' && others.length === 0 ? partName(only) : 'ip'
}
