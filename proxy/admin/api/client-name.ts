import { ErrorReply, errors } from '../../../shared/error-replies.ts'
import { partsOf } from '../../limits/clients/client-entry.ts'
import { headerValues, comparableValues } from '../../limits/keys/part-values.ts'
import { bodyValues } from '../../limits/keys/body/key-body.ts'
import { namedBodyValues } from '../../limits/keys/named-body-values.ts'
import { isHashedKey, keyOfAll, MAX_READINGS, partitionKeysOf } from '../../limits/keys/partition-key.ts'
import type { Charge } from '../../limits/limiter.ts'
import type { Policy } from '../../policy.ts'
import {
  hasBodyKey,
  partName,
  singleParts,
  type PrefixLengths,
  type SinglePart,
} from '../../policy/partition.ts'
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
import { pathValuesOfName } from '../../limits/rules/path-values.ts'
import { policyOf, type About } from './entry-request.ts'

/** A client as an operator names it: by the parts by which rules count, or by its key in a list of limited clients. */
type ClientName =
  | { readonly key: string }
  | {
      readonly key?: undefined
      /** By lower-case name of a part, its value in each spelling that counts; for parts of bodies, the value as written. */
      readonly values: ReadonlyMap<string, readonly string[]>
      /** The address or the network given as `ip`. */
      readonly range: AddressRange | undefined
    }

/**
 * Returns the charges of a client that an operator names. `client` is an object with a value for each part of the rule's `key`, such as
 * `{"ip": "192.0.2.7"}` or `{"ip": "2001:db8::1", "header:x-api-key": "…"}`, or `{"id": "h:…"}`, which lists of limited clients show for a
 * secret value. A plain text is an address, or the value of the only part by which the policy counts. A value that can be read in several
 * ways has a charge for each reading.
 *
 * @param about.policy the name of the policy; undefined for all policies under which the client can be counted
 * @returns at least one charge, or the error to answer with
 */
export function chargesOfClient(
  about: About,
  policies: readonly Policy[],
  addresses: AddressReader,
): readonly Charge[] | ErrorReply {
  const { client } = about
  const policy = policyOf(about, policies)
  if (policy instanceof ErrorReply) return policy
  const name = readName(typeof client === 'string' ? { [onlyPartOf(policy)]: client } : client, addresses)
  if (name instanceof ErrorReply) return name
  const candidates = policy ? [policy] : policies
  const charges = candidates.flatMap((candidate) =>
    keysUnder(candidate, name, policy !== undefined).map((partitionKey): Charge => ({
      policy: candidate,
      partitionKey,
    })),
  )
  return charges.length > 0 ? charges : whyNobody(name)
}

/** Returns the address and the headers of a request by the named client, as far as the operator names them. */
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
 * Returns the keys of a client for all rules. For an address, this is the address itself, whether or not a rule counts by it; otherwise,
 * the keys under the rules that count by exactly these parts.
 *
 * @returns at least one key, without duplicates, each with its parts (`partsOf`); or the error to answer with
 */
export function keysOfClient(
  client: unknown,
  policies: readonly Policy[],
  addresses: AddressReader,
): readonly NamedKey[] | ErrorReply {
  const name = readName(typeof client === 'string' ? { ip: client } : client, addresses)
  if (name instanceof ErrorReply) return name
  if (name.key === undefined) {
    if (name.values.has('global')) return errors.clientGlobal
    const [address] = name.values.get('ip') ?? []
    if (address !== undefined && name.values.size === 1) return [{ partitionKey: address, parts: '' }]
  }
  const keys = new Map<string, NamedKey>()
  for (const policy of policies)
    for (const partitionKey of keysUnder(policy, name, true)) {
      const parts = partsOf(policy, partitionKey)
      keys.set(`${parts} ${partitionKey}`, { partitionKey, parts })
    }
  return keys.size > 0 ? [...keys.values()] : whyNobody(name)
}

/** Returns the partition key that lists show under this name (`describeKey`), for any rule; undefined if lists never show such a name. */
export function listedKeyOf(client: unknown, addresses: AddressReader): string | undefined {
  const named = typeof client === 'string' ? { ip: client } : client
  const name = readName(named, addresses)
  if (name instanceof ErrorReply) return undefined
  if (name.key !== undefined) return name.key
  const { values, range } = name
  if (values.has('global')) return keyOfAll
  const [address] = values.size === 1 ? (values.get('ip') ?? []) : []
  if (address !== undefined || values.size > 0 || !range) return address
  return formatNetwork(range.address, { ipv4: range.bits - 96, ipv6: range.bits })
}

function whyNobody(name: ClientName): ErrorReply {
  const isNetwork = name.key === undefined && name.range !== undefined && !name.values.has('ip')
  return isNetwork ? errors.clientIsNetwork : errors.clientPartsDiffer
}

type NamedKey = { readonly partitionKey: string; readonly parts: string }

/** Returns the name of a client in the operators' interface: readable, or a hash. */
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
  const values = new Map<string, readonly string[]>()
  let range: AddressRange | undefined
  for (const [given, value] of entries) {
    const part = given.toLowerCase()
    if (part === 'id' && entries.length === 1 && typeof value === 'string' && isHashedKey(value))
      return { key: value }
    if (part === 'ip' && typeof value === 'string') range = parseClientRange(value)
    const read = readValues(part, value, addresses)
    if (read === errors.clientIsNetwork && entries.length === 1) continue
    if (read instanceof ErrorReply) return read
    const readings = read.filter((reading) => reading !== '')
    const isReadable = readings.length > 0 && readings.length <= MAX_READINGS
    if (!isReadable || values.has(part)) return errors.clientUnreadable
    values.set(part, readings)
  }
  return { values, range }
}

/** Returns the value of a part in each spelling that counts. */
function readValues(part: string, value: unknown, addresses: AddressReader): readonly string[] | ErrorReply {
  if (part === 'global' && value === true) return [part]
  if (typeof value !== 'string' || value.length > MAX_VALUE_LENGTH) return errors.clientUnreadable
  if (part === 'ip') return oneOr(whyNoAddress(value), readAddress(value, addresses))
  if (part.startsWith('ip/')) return oneOr(errors.clientAddressUnreadable, readNetwork(part, value))
  if (part === 'country' || part === 'asn') return [value.toUpperCase().replace('UNKNOWN', UNKNOWN)]
  if (part === 'host') return [comparableHost(readAuthority(value) ?? '')]
  if (part.startsWith('jwt:')) return [value]
  if (part.startsWith('path:')) return pathValuesOfName(value)
  const bytes = asBytes(value)
  // The rule determines how the value is read.
  if (part.startsWith('body:')) return bodyValues(bytes, false).length > 0 ? [value] : []
  if (part.startsWith('query:'))
    return comparableValues(valuesOf(bytes, { isQuoted: false, isNumber: false }))
  if (!fieldValue.test(bytes)) return errors.clientUnreadable
  if (part.startsWith('cookie:'))
    return comparableValues(valuesOf(bytes, { isQuoted: true, isNumber: false }))
  if (part.startsWith('header:')) return headerValues(part.slice('header:'.length), bytes, addresses)
  return errors.clientUnreadable
}

function oneOr(error: ErrorReply, value: string | undefined): readonly string[] | ErrorReply {
  return value === undefined ? error : [value]
}

/** Encodes a text as Node reads a header: one character for each byte that was sent. */
function asBytes(value: string): string {
  return Buffer.from(value).toString('latin1')
}

function whyNoAddress(value: string): ErrorReply {
  return parseAddressRange(value) ? errors.clientIsNetwork : errors.clientAddressUnreadable
}

/** Returns the key under which an address counts. The input may be such a key, for example `2001:db8::/64`, which lists show. */
function readAddress(text: string, addresses: AddressReader): string | undefined {
  const network = addresses.readPeer(text.split('/', 1)[0])?.client.prefix
  return parseAddress(text) || network === text ? network : undefined
}

/** Returns the network of an address. The input may be a network as lists show it. */
function readNetwork(part: string, text: string): string | undefined {
  const [, ipv4, ipv6] = part.split('/', 3).map(Number)
  const range = parseClientRange(text)
  return range && ipv4 !== undefined && ipv6 !== undefined ? networkIn(range, { ipv4, ipv6 }) : undefined
}

/** Returns undefined if the range is larger than a network of this length. */
function networkIn({ address, bits }: AddressRange, lengths: PrefixLengths): string | undefined {
  const network = formatNetwork(address, lengths)
  const length = parseAddressRange(network)?.bits ?? 128
  return bits === 128 || bits === length ? network : undefined
}

/** @param isExact whether to reject a client with parts by which the policy does not count */
function keysUnder(policy: Policy, name: ClientName, isExact: boolean): readonly string[] {
  if (name.key !== undefined) return isHashed(policy) ? [name.key] : []
  const { values, range } = name
  // A request whose body could not be read counts by address.
  if (hasBodyKey(policy) && values.size === 1 && values.has('ip')) return values.get('ip') ?? []
  const all = singleParts(policy.partition)
  const parts = new Set(all.map((part) => partName(part).toLowerCase()))
  const hasNetwork = all.some(({ kind }) => kind === 'network')
  if (hasNetwork) parts.add('ip')
  else if (range && !values.has('ip')) return []
  if (isExact && ![...values.keys()].every((part) => parts.has(part))) return []
  const read = all.map((part): readonly [SinglePart, readonly string[]] => {
    const ofNetwork = part.kind === 'network' && range ? networkIn(range, part) : undefined
    const written = values.get(partName(part).toLowerCase()) ?? (ofNetwork === undefined ? [] : [ofNetwork])
    return [part, part.kind === 'body' ? written.flatMap((text) => namedBodyValues(part, text)) : written]
  })
  const keys = combinationsOf(read).flatMap((one) =>
    partitionKeysOf(policy, (part) => one.get(partName(part)) ?? []),
  )
  return [...new Set(keys)]
}

/** Maximum number of clients for which a request with a body may count, including extra ones. */
const MAX_COMBINATIONS = 200

/**
 * Returns combinations with one value of each part that has values. Given all values at once, `partitionKeysOf` would leave out keys if
 * there are more than eight.
 */
function combinationsOf(
  read: readonly (readonly [SinglePart, readonly string[]])[],
): readonly ReadonlyMap<string, readonly string[]>[] {
  let combinations: ReadonlyMap<string, readonly string[]>[] = [new Map()]
  for (const [part, values] of read)
    if (values.length > 0)
      combinations = combinations
        .flatMap((before) => values.map((value) => new Map(before).set(partName(part), [value])))
        .slice(0, MAX_COMBINATIONS)
  return combinations
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
