import { errors, type ErrorReply } from '../../../shared/error-replies.ts'
import { partsOf } from '../../limits/clients/client-entry.ts'
import { headerValues, withoutSignatures } from '../../limits/keys/part-values.ts'
import { bodyValues } from '../../limits/keys/body/key-body.ts'
import { namedBodyValues } from '../../limits/keys/named-body-values.ts'
import { isHashedKey, keyOfAll, maxReadings, partitionKeysOf } from '../../limits/keys/partition-key.ts'
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

/** A client as an operator names it: by the parts that rules count by, or by the key in a list of limited clients. */
type ClientName =
  | { readonly key: string }
  | {
      readonly key?: undefined
      /** By lower-case names of parts, in each spelling that they count by; parts of bodies as they are written. */
      readonly values: ReadonlyMap<string, readonly string[]>
      /** The address or the network that is named as `ip`. */
      readonly range: AddressRange | undefined
    }

/**
 * Finds what an operator asks about: `client` is an object with a value for each part of the rule's `key`, such as
 * `{"ip": "192.0.2.7"}` or `{"ip": "2001:db8::1", "header:x-api-key": "…"}`, or `{"id": "h:…"}` as lists of limited
 * clients have it where a value is secret. A mere text is an address, or the one part that the policy counts by.
 * A value that can be read in several ways counts for each of them, and all are meant.
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
  const charges = candidates.flatMap((candidate) =>
    keysUnder(candidate, name, policy !== undefined).map((partitionKey): Charge => ({
      policy: candidate,
      partitionKey,
    })),
  )
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
 * The keys that an operator means for all rules: for an address that address, whether a rule counts by it or not; otherwise the keys
 * under the rules that count by exactly these parts.
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

/** The partition key for which lists have this name (`describeKey`), under any rule; undefined if they name nobody like this. */
export function listedKeyOf(client: unknown, addresses: AddressReader): string | undefined {
  const named = typeof client === 'string' ? { ip: client } : client
  const name = readName(named, addresses)
  if ('body' in name) return undefined
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
  const values = new Map<string, readonly string[]>()
  let range: AddressRange | undefined
  for (const [given, value] of entries) {
    const part = given.toLowerCase()
    if (part === 'id' && entries.length === 1 && typeof value === 'string' && isHashedKey(value))
      return { key: value }
    if (part === 'ip' && typeof value === 'string') range = parseClientRange(value)
    const read = readValues(part, value, addresses)
    if (read === errors.clientIsNetwork && entries.length === 1) continue
    if ('body' in read) return read
    const readings = read.filter((reading) => reading !== '')
    const isReadable = readings.length > 0 && readings.length <= maxReadings
    if (!isReadable || values.has(part)) return errors.clientUnreadable
    values.set(part, readings)
  }
  return { values, range }
}

/** The value of a part in each spelling that it counts by. */
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
  // How it is read depends on the rule.
  if (part.startsWith('body:')) return bodyValues(bytes, false).length > 0 ? [value] : []
  if (part.startsWith('query:'))
    return withoutSignatures(valuesOf(bytes, { isQuoted: false, isNumber: false }))
  if (!fieldValue.test(bytes)) return errors.clientUnreadable
  if (part.startsWith('cookie:'))
    return withoutSignatures(valuesOf(bytes, { isQuoted: true, isNumber: false }))
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

/** Returns undefined if the range is larger than a network of this length. */
function networkIn({ address, bits }: AddressRange, lengths: PrefixLengths): string | undefined {
  const network = formatNetwork(address, lengths)
  const length = parseAddressRange(network)?.bits ?? 128
  return bits === 128 || bits === length ? network : undefined
}

/** @param isExact whether the client may have no parts that the policy does not count by */
function keysUnder(policy: Policy, name: ClientName, isExact: boolean): readonly string[] {
  if (name.key !== undefined) return isHashed(policy) ? [name.key] : []
  const { values, range } = name
  // What could not be read in a body.
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

/** Maximum clients that a request with a body may count for, extra ones included. */
const MAX_COMBINATIONS = 200

/** Each combination has one value of each part that has values. `partitionKeysOf` would leave out keys if there are more than eight. */
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
