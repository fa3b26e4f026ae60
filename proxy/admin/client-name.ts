import { errors, type ErrorReply } from '../../shared/error-replies.ts'
import type { AddressReader, ClientAddress } from '../request/client-address.ts'
import { parseAddress } from '../request/ip-address.ts'
import type { Charge } from '../limiter/limiter.ts'
import { partitionKeyOf } from '../decide/partition-key.ts'
import type { PartitionPart, Policy } from '../policy.ts'

/** A client as an operator names it: the parts that rules count by, or what a list of limited clients calls it. */
type ClientName =
  | { readonly key: string }
  | {
      readonly key?: undefined
      readonly parts: ReadonlySet<string>
      readonly address: ClientAddress
      readonly headers: Readonly<Record<string, string>>
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
    const partitionKey = keyUnder(candidate, name, addresses, policy !== undefined)
    return partitionKey === undefined ? [] : [{ policy: candidate, partitionKey }]
  })
  return charges.length > 0 ? charges : errors.clientPartsDiffer
}

/** How the operator's interface names a client that was counted under a policy: readable, or by its hash. */
export function describeClient(
  policy: Policy | undefined,
  partitionKey: string,
): { readonly ip: string } | { readonly id: string } {
  return policy && isByAddress(policy) ? { ip: partitionKey } : { id: partitionKey }
}

/** How the limits table writes a part of a rule's key. */
export function partName(part: PartitionPart): string {
  return part.kind === 'ip' ? 'ip' : `header:${part.name}`
}

const hashedKey = /^h:[\w-]{22}$/
/** Visible characters, with blanks between them (RFC 9110 section 5.5). */
const fieldValue = /^[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?$/
const LONGEST_VALUE = 8 * 1024

/** Where no `ip` is given: then no rule that counts by it is asked. */
const nobody: ClientAddress = { address: '', prefix: '' }

function readName(client: unknown, addresses: AddressReader): ClientName | ErrorReply {
  if (typeof client !== 'object' || client === null || Array.isArray(client)) return errors.clientUnreadable
  const entries = Object.entries(client)
  if (entries.length === 0 || entries.length > 32) return errors.clientUnreadable
  const parts = new Set<string>()
  const headers: Record<string, string> = {}
  let address = nobody
  for (const [given, value] of entries) {
    const part = given.toLowerCase()
    if (typeof value !== 'string' || parts.has(part)) return errors.clientUnreadable
    parts.add(part)
    if (part === 'id') {
      return entries.length === 1 && hashedKey.test(value) ? { key: value } : errors.clientUnreadable
    } else if (part === 'ip') {
      const read = readAddress(value, addresses)
      if (!read) return errors.clientAddressUnreadable
      address = read
    } else if (part.startsWith('header:')) {
      // As Node reads a field: a character for each byte that was sent.
      const bytes = Buffer.from(value).toString('latin1')
      if (bytes.length > LONGEST_VALUE || !fieldValue.test(bytes)) return errors.clientUnreadable
      // A field may be named as something that every object has.
      Object.defineProperty(headers, part.slice('header:'.length), { value: bytes, enumerable: true })
    } else return errors.clientUnreadable
  }
  return { parts, address, headers }
}

/** An address, or what it counts as, such as `2001:db8::/64`, as lists have them. */
function readAddress(text: string, addresses: AddressReader): ClientAddress | undefined {
  const client = addresses.readPeer(text.split('/', 1)[0])?.client
  return parseAddress(text) || client?.prefix === text ? client : undefined
}

/** @param isExact whether the client may have no parts that the policy does not count by */
function keyUnder(
  policy: Policy,
  name: ClientName,
  addresses: AddressReader,
  isExact: boolean,
): string | undefined {
  if (name.key !== undefined) return isByAddress(policy) ? undefined : name.key
  const { parts, address, headers } = name
  const isNamed = policy.partition.every((part) => parts.has(partName(part)))
  if (!isNamed || (isExact && parts.size !== policy.partition.length)) return undefined
  return partitionKeyOf(policy, { client: address, headers, addresses })
}

function isByAddress({ partition }: Policy): boolean {
  return partition.length === 1 && partition[0]?.kind === 'ip'
}

function onlyPartOf(policy: Policy | undefined): string {
  const [only, ...others] = policy?.partition ?? []
  return only && others.length === 0 ? partName(only) : 'ip'
}
