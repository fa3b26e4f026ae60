import type { Policy } from '../../../policy.ts'
import { hashedKeyOf, type ReadPart } from '../partition-key.ts'
import { MAX_VALUES } from './found-values.ts'
import type { KeyBody } from './key-body.ts'
import { counted, type Values } from './member-values.ts'
import { readEntry } from './read-entry.ts'
import type { UnreadKey } from '../../../telemetry/telemetry.ts'

/** The partition keys of a request under a policy whose key is in the body. */
export type BodyKeys = {
  /** By partition key, the number of requests of a batch that count for it; 1 without a batch. */
  readonly requests: ReadonlyMap<string, number>
  /** The keys that only few backends find in the request. */
  readonly extra: ReadonlySet<string>
  /** The reason why the request counts by the client's address, too or only. */
  readonly unread: UnreadKey | undefined
}

/** Clients that a request can count for at most under a policy, and as many extra ones: each is a counter to be looked up. */
const MAX_KEYS = 100

/**
 * Returns the keys of a request under a policy with a `body` part, in the format of `partitionKeysOf`. Each element of a batch is a
 * request of its own. One that names no key counts for `address`; a body that could be read otherwise counts for it as well as for its
 * own keys.
 *
 * @returns undefined if it would count for too many: a value can be read in more than `maxReadings` ways, there are more than
 *   `MAX_KEYS` clients or `MAX_VALUES` elements, or the policy has a device and the body is not read as a whole, or an account is too
 *   long to be cleaned. No keys where another part of the key is absent: the policy does not apply
 */
export function bodyKeysOf(
  { partition, device }: Pick<Policy, 'partition' | 'device'>,
  readPart: ReadPart,
  body: KeyBody,
  address: string,
): BodyKeys | undefined {
  // Of what cannot be read, guesses at one account count for as many clients as there are addresses. No sign-in has such a body.
  if (device && body.isPartlyRead) return undefined
  const entries = partition.map((part) => readEntry(part, readPart, body, partition.length === 1))
  if (device && entries.some(({ hasUncleaned }) => hasUncleaned)) return undefined
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
  // Without an iterator for each of 2,000 elements that have none.
  return values.size > 0 && values.values().some(({ isExtra }) => !isExtra)
}

function isTooMany(texts: Values): boolean {
  let extra = 0
  for (const { isExtra } of texts.values()) if (isExtra) extra++
  return extra > MAX_KEYS || texts.size - extra > MAX_KEYS
}

/** The texts of the keys that the values of all parts make, with how many requests count for each; empty where one part has none. */
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

/** A text with another one after it, which begins where its length says. */
function lengthened(text: string, value: string): string {
  return `${text}${value.length}:${value}`
}
