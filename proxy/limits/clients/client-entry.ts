import { mayHashAddress } from '../keys/partition-key.ts'
import type { BanPolicy, Policy } from '../../policy.ts'
import { partName } from '../../policy/partition.ts'

/** An entry about one client, set at run time by an operator or by a rule's `ban`, until a given time. */
export type ClientEntry = Ban | ClientOverride

export type EntryKind = ClientEntry['kind']

/** The entries of one kind. */
export type EntryOf<Kind extends EntryKind> = Extract<ClientEntry, { readonly kind: Kind }>

export type Ban = {
  readonly kind: 'ban'
  /** The name of the rule under which the client is banned; undefined: under all rules. */
  readonly policy?: string
  /** For a ban under all rules, the parts of the key (`partsOf`), because the same value of other parts is another client. */
  readonly parts?: string
  readonly partitionKey: string
  readonly by: 'rule' | 'operator'
  /** The reason that the operator gave. */
  readonly reason?: string
  /** For a ban by a rule, which ban in a row it is, from 1. */
  readonly times?: number
}

/** @param client the client's name in logs and webhooks; undefined if it must not be reported */
export type OnBan = (ban: Ban, forMs: number, client: string | undefined) => void

export type ClientOverride = {
  readonly kind: 'override'
  readonly policy: string
  readonly partitionKey: string
  /** The quota that replaces the rule's. */
  readonly requests: number
  /** A name for a client whose key is a hash. */
  readonly label?: string
}

/** An entry and the milliseconds until it ends. */
export type TimedEntry<Entry extends ClientEntry = ClientEntry> = {
  readonly id: EntryId
  readonly entry: Entry
  readonly leftMs: number
}

/** Identifies an entry: there is one of each kind for a client under a rule. Rule names contain neither blanks nor `*`. */
export type EntryId = string

/** Maximum number of bans, and of overrides. */
export const MAX_ENTRIES = 10_000
/** Maximum number of bans up to which rules may add bans. The rest is reserved for operators. */
export const MAX_RULE_BANS = 9_000
/** Maximum number of bans by rules in one IPv6 /48 network. */
export const MAX_BANS_PER_SITE = 256

/**
 * The length of a ban by a rule, in milliseconds.
 *
 * @param times which ban in a row it is, from 1
 */
export function banLengthMs({ forMs, maxMs }: BanPolicy, times: number): number {
  return Math.min(maxMs, forMs * 2 ** (times - 1))
}

/** The fields of an entry that identify it. */
export type NamedEntry = Ban | Pick<ClientOverride, 'kind' | 'policy' | 'partitionKey'>

/** The id of an entry. An entry replaces the one with the same id. */
export function idOf(entry: NamedEntry): EntryId {
  if (entry.kind === 'override') return entryId('override', entry.policy, entry.partitionKey)
  const { policy, parts = '', partitionKey } = entry
  return policy === undefined ? everywhereId(parts, partitionKey) : entryId('ban', policy, partitionKey)
}

/** @param policy the name of a rule */
export function entryId(kind: EntryKind, policy: string, partitionKey: string): EntryId {
  return `${kind} ${policy} ${partitionKey}`
}

/** The id of a ban under all rules. */
export function everywhereId(parts: string, partitionKey: string): EntryId {
  return `ban *${parts} ${partitionKey}`
}

const namesOfParts = new WeakMap<Policy['partition'], string>()

/** The parts of a client's key under a policy, as a text without blanks; empty if the key is the address itself. */
export function partsOf({ partition }: Policy, partitionKey: string): string {
  if (!partitionKey.startsWith('h:')) return ''
  const known = namesOfParts.get(partition)
  if (known !== undefined) return known
  const names = partition.map((part) =>
    part.kind === 'first' ? `first(${part.of.map(partName).join(',')})` : partName(part),
  )
  const parts = encodeURIComponent(names.join('+'))
  namesOfParts.set(partition, parts)
  return parts
}

/** The name of an entry's rule; for a ban under all rules, `*` and the parts of its key. */
export function scopeOf(id: EntryId): string {
  return id.split(' ', 2)[1] ?? ''
}

/** The partition key in an id. */
export function partitionKeyOf(id: EntryId): string {
  return id.split(' ').slice(2).join(' ')
}

/** The kind of the entry with this id. */
export function kindOf(id: EntryId): EntryKind {
  return id.startsWith('ban ') ? 'ban' : 'override'
}

/** Reads an entry from parsed JSON. Returns undefined for formats of other gateway versions. */
export function readEntry(value: unknown): ClientEntry | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const entry = value as Record<string, unknown>
  if (typeof entry['parts'] === 'string') entry['parts'] = shareText(entry['parts'])
  if (typeof entry['partitionKey'] !== 'string') return undefined
  if (entry['kind'] === 'override') {
    const isValid = typeof entry['policy'] === 'string' && Number.isSafeInteger(entry['requests'])
    return isValid ? (value as ClientOverride) : undefined
  }
  const isText = (value: unknown): boolean => value === undefined || typeof value === 'string'
  const isValid = isText(entry['policy']) && isText(entry['parts'])
  return entry['kind'] === 'ban' && isValid ? (value as Ban) : undefined
}

const MAX_SHARED_TEXTS = 1000
const sharedTexts = new Map<string, string>()

/** Returns one shared string for equal texts, so that ten thousand entries do not keep one copy each. */
function shareText(text: string): string {
  const known = sharedTexts.get(text)
  if (known !== undefined) return known
  if (sharedTexts.size >= MAX_SHARED_TEXTS) sharedTexts.clear()
  sharedTexts.set(text, text)
  return text
}

/** The policies that an entry applies to: the one that it names or, for a ban under all rules, each policy whose key has the same parts. */
export function policiesOfEntry(id: EntryId, policies: readonly Policy[]): readonly Policy[] {
  const scope = scopeOf(id)
  const partitionKey = partitionKeyOf(id)
  return policies.filter((policy) => scope === policy.name || scope === `*${partsOf(policy, partitionKey)}`)
}

/**
 * The name of a client in log lines and webhooks: its address, or the hash of another key. Undefined if it must not be logged: addresses,
 * and hashes that may be of addresses, require `logAddresses`.
 *
 * @param policies the policies under which the client has the key; empty if they are not known
 */
export function loggedClient(
  partitionKey: string,
  logAddresses: boolean,
  policies: readonly Policy[],
): string | undefined {
  if (logAddresses) return partitionKey
  const mayBeAddress = policies.length === 0 || policies.some(mayHashAddress)
  return mayBeAddress || !partitionKey.startsWith('h:') ? undefined : partitionKey
}
