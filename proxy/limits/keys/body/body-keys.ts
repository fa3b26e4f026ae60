import type { Policy } from '../../../policy.ts'
import { hashedKeyOf, type ReadPart } from '../partition-key.ts'
import { MAX_VALUES } from './found-values.ts'
import type { KeyBody } from './key-body.ts'
import { counted, type Values } from './member-values.ts'
import { readEntry } from './read-entry.ts'
import type { UnreadKey } from '../../../telemetry/telemetry.ts'

/** The partition keys of a request under a policy whose key is in the body. */
export type BodyKeys = {
  /** The number of requests in a batch that count for each partition key; 1 without a batch. */
  readonly requests: ReadonlyMap<string, number>
  /** The keys that only few backends find in the request. */
  readonly extra: ReadonlySet<string>
  /** Why the request counts by the client's address, too or only. */
  readonly unread: UnreadKey | undefined
}

/** Maximum clients that a request can count for under a policy, and maximum extra clients; each requires looking up a counter. */
const MAX_KEYS = 100

/**
 * Returns the keys of a request under a policy with a `body` part, in the format of `partitionKeysOf`. Each element of a batch is a
 * separate request. An element without a key counts for `address`. A body that backends could read differently counts for both its own keys
 * and `address`.
 *
 * @returns undefined if the request would count for too many clients: a value can be read in more than `MAX_READINGS` ways, there are more
 *   than `MAX_KEYS` clients or `MAX_VALUES` elements, or the policy has `device` and a backend may find further accounts in the body. Empty
 *   if another part of the key is absent, so that the policy does not apply
 */
export function bodyKeysOf(
  { partition, device }: Pick<Policy, 'partition' | 'device'>,
  readPart: ReadPart,
  body: KeyBody,
  address: string,
): BodyKeys | undefined {
  // Guesses at one account would count by address if the account cannot be read. No sign-in has such a body.
  if (device && body.isPartlyRead) return undefined
  const entries = partition.map((part) => readEntry(part, readPart, body, partition.length === 1))
  if (device && entries.some(({ isIncomplete }) => isIncomplete)) return undefined
  const elements = Math.max(...entries.map((entry) => entry.elements))
  if (entries.some(({ isCut }) => isCut) || elements > MAX_VALUES) return undefined
  if (entries.some(({ isAbsent }) => isAbsent))
    return { requests: new Map(), extra: new Set(), unread: undefined }
  let unread = entries.find((entry) => entry.unread)?.unread
  let byAddress = unread ? 1 : 0
  let missing = 0
  const texts: Values = new Map()
  const only = entries.length === 1 ? entries[0] : undefined
  for (let element = 0; element < elements; element++) {
    const combined = only ? only.valuesOf(element) : combine(entries.map(({ valuesOf }) => valuesOf(element)))
    if (!hasUsual(combined)) missing++
    for (const [text, one] of combined) texts.set(text, counted(texts.get(text), one))
    if (texts.size > 2 * MAX_KEYS) return undefined
  }
  if (isTooMany(texts)) return undefined
  if (missing > 0) unread ??= 'missing'
  byAddress = Math.max(byAddress, missing)
  const requests = new Map<string, number>()
  const extra = new Set<string>()
  for (const [text, one] of texts) {
    const key = hashedKeyOf(only ? lengthened('', text) : text)
    requests.set(key, one.requests)
    if (one.isExtra) extra.add(key)
  }
  if (byAddress > 0) requests.set(address, byAddress)
  return { requests, extra, unread }
}

function hasUsual(values: Values): boolean {
  // Checking the size first avoids an iterator for each of 2,000 elements without values.
  return values.size > 0 && values.values().some(({ isExtra }) => !isExtra)
}

function isTooMany(texts: Values): boolean {
  let extra = 0
  for (const { isExtra } of texts.values()) if (isExtra) extra++
  return extra > MAX_KEYS || texts.size - extra > MAX_KEYS
}

/** Combines the values of all parts into the texts of keys, with the number of requests for each; empty if a part has no values. */
function combine(parts: readonly Values[]): Values {
  let texts: Values = new Map([['', { requests: 1, isExtra: false }]])
  for (const values of parts) {
    const longer: Values = new Map()
    for (const [text, before] of texts)
      for (const [value, one] of values) {
        const requests = Math.max(before.requests, one.requests)
        longer.set(lengthened(text, value), { requests, isExtra: before.isExtra || one.isExtra })
        if (longer.size > 2 * MAX_KEYS) return longer
      }
    texts = longer
  }
  return texts
}

/** Appends a text after its length, so that texts are unambiguously separated. */
function lengthened(text: string, value: string): string {
  return `${text}${value.length}:${value}`
}
