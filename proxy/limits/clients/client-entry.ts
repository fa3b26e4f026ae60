import { mayHashAddress } from '../keys/partition-key.ts'
import type { BanPolicy, Policy } from '../../policy.ts'
import { partName } from '../../policy/partition.ts'

/** An entry about one client, set at run time by an operator or by a rule's `ban`, until a given time. */
export type ClientEntry = Ban | ClientOverride

export type Ban = {
  readonly kind: 'ban'
  /** The name of the rule under which the client is banned; undefined: under all. */
  readonly policy?: string
  /** For a ban under all rules, the parts of the key (`partsOf`): the same value of other parts is another client. */
  readonly parts?: string
  readonly partitionKey: string
  readonly by: 'rule' | 'operator'
  /** The operator's words. */
  readonly reason?: string
  /** For a rule's ban, its number in the current series, from 1. */
  readonly times?: number
}

/** @param client its name in logs and webhooks; undefined if that must not be reported */
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

/** An entry and how long it still lasts. */
export type TimedEntry<Entry extends ClientEntry = ClientEntry> = {
  readonly id: EntryId
  readonly entry: Entry
  readonly leftMs: number
}

/** Tells entries apart: one of each kind for a client under a rule. Names of rules have no blank and no `*` in them. */
export type EntryId = string

/** Maximum number of bans, and of overrides. */
export const MAX_ENTRIES = 10_000
/** Maximum number of bans at which rules add more: the rest is reserved for operators. */
export const MAX_RULE_BANS = 9_000
/** Maximum number of bans by rules of clients in one IPv6 network of 48 bits. */
export const MAX_BANS_PER_SITE = 256

/**
 * How long a ban by a rule lasts.
 *
 * @param times which ban in a row it is, from 1
 */
export function banLengthMs({ forMs, maxMs }: BanPolicy, times: number): number {
  return Math.min(maxMs, forMs * 2 ** (times - 1))
}

/** What tells an entry apart. */
export type NamedEntry = Ban | Pick<ClientOverride, 'kind' | 'policy' | 'partitionKey'>

/** The id of an entry, by which another one for the same client replaces it. */
export function idOf(entry: NamedEntry): EntryId {
  if (entry.kind === 'override') return entryId('override', entry.policy, entry.partitionKey)
  const { policy, parts = '', partitionKey } = entry
  return policy === undefined ? everywhereId(parts, partitionKey) : entryId('ban', policy, partitionKey)
}

/** @param policy the name of a rule */
export function entryId(kind: ClientEntry['kind'], policy: string, partitionKey: string): EntryId {
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

/** The name of the rule that an entry is about; of a ban under all rules, `*` and the parts of its key. */
export function scopeOf(id: EntryId): string {
  return id.split(' ', 2)[1] ?? ''
}

/** The partition key in an id. */
export function partitionKeyOf(id: EntryId): string {
  return id.split(' ').slice(2).join(' ')
}

/** The kind of the entry with this id. */
export function kindOf(id: EntryId): ClientEntry['kind'] {
  return id.startsWith('ban ') ? 'ban' : 'override'
}

/**
 * Reads an entry from parsed JSON. Undefined for the formats of other versions of the gateway.
 */
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

/** The same text as one string: of ten thousand entries each would bring its own. */
function shareText(text: string): string {
  const known = sharedTexts.get(text)
  if (known !== undefined) return known
  if (sharedTexts.size >= MAX_SHARED_TEXTS) sharedTexts.clear()
  sharedTexts.set(text, text)
  return text
}

/** The policies that an entry is about: the one it names, or for a ban under all rules each whose keys are made of the same parts. */
export function policiesOfEntry(id: EntryId, policies: readonly Policy[]): readonly Policy[] {
  const scope = scopeOf(id)
  const partitionKey = partitionKeyOf(id)
  return policies.filter((policy) => scope === policy.name || scope === `*${partsOf(policy, partitionKey)}`)
}

/**
 * The name of a client in log lines and webhooks: its address, or the hash of its other key. Undefined if it must not be logged: without
 * `logAddresses` that is an address, and a hash that may be of one.
 *
 * @param policies under which the client has the key; none if they are not known
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
