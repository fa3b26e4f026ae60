import { hash } from 'node:crypto'
import type { Policy } from '../../policy.ts'
import { partName, type SinglePart } from '../../policy/partition.ts'

/** 128 bits of a hash in base64url, rounded up to whole characters. */
const HASH_LENGTH = 22

const hashedKey = new RegExp(`^h:[\\w-]{${HASH_LENGTH}}$`)

/** Whether a text has the form of a hashed key. */
export function isHashedKey(text: string): boolean {
  return hashedKey.test(text)
}

/** Whether the policy's keys hash an address with other parts. Anyone who knows the other parts can find the address by trying all. */
export function mayHashAddress({ partition }: Pick<Policy, 'partition'>): boolean {
  if (partition.length === 1) return false
  return partition
    .flatMap((part) => (part.kind === 'first' ? part.of : [part]))
    .some(({ kind }) => kind === 'ip' || kind === 'network')
}

/** The only key of a policy that counts all clients together. */
export const keyOfAll = 'global'

/**
 * Returns the values of a part of a key in the spelling that they count by: empty if the part is absent, several if backends would read
 * different values.
 */
export type ReadPart = (part: SinglePart) => readonly string[]

/** Maximum number of clients that a request can count for under a policy. No legitimate request can be read in more ways. */
export const MAX_READINGS = 8
/** Stands for more values than `MAX_READINGS`, so that the request is rejected. */
export const tooManyValues = Array.from({ length: MAX_READINGS + 1 }, (_, i) => String(i))

/**
 * Returns the keys of the clients that a request counts for under a policy. If a part has several values, each value is a client. The
 * backend serves only one of them, but all are counted: otherwise a client could appear as a new one each time, with a value that the
 * backend does not read.
 *
 * The key is the address or network itself if that is the only part, and `global` for a policy that counts all clients together; this also
 * applies if `first` comes down to such a part. Otherwise it is `h:` and a hash of all parts, because headers can contain secrets and hosts
 * can be long. Each part is hashed after its length, so that parts are unambiguously separated.
 *
 * @returns without duplicates; empty if a part is absent, so that the policy does not apply to the request. If there are more than
 *   `MAX_READINGS` keys, returns more than that, but not all
 */
export function partitionKeysOf(
  { partition }: Pick<Policy, 'partition'>,
  readPart: ReadPart,
): readonly string[] {
  const [only] = partition
  if (only && partition.length === 1) {
    const present = only.kind === 'first' ? (presentParts(only.of, readPart)[0] ?? only) : only
    const { kind } = present
    if (kind === 'global') return [keyOfAll]
    if (kind === 'ip') return readPart({ kind })
    if (kind === 'network') return readPart(present)
  }
  let texts = ['']
  for (const part of partition) {
    const values = part.kind === 'first' ? readFirst(part.of, readPart) : readPart(part)
    texts = texts
      .flatMap((text) => values.map((value) => `${text}${value.length}:${value}`))
      .slice(0, MAX_READINGS + 1)
  }
  return texts.map(hashedKeyOf)
}

/** @param text the parts of a key, different for each client */
export function hashedKeyOf(text: string): string {
  return `h:${hash('sha256', text, 'base64url').slice(0, HASH_LENGTH)}`
}

/** Whether every request has the part. A request has other parts only if its client has sent them. */
const isAlwaysThere: Readonly<Record<SinglePart['kind'], boolean>> = {
  ip: true,
  network: true,
  country: true,
  asn: true,
  host: true,
  global: true,
  path: true,
  header: false,
  cookie: false,
  query: false,
  jwt: false,
  body: false,
}

export const alwaysThere: ReadonlySet<string> = new Set(
  Object.entries(isAlwaysThere).flatMap(([kind, isThere]) => (isThere ? [kind] : [])),
)

/**
 * Returns the parts of `first` that a request counts by: all parts that the client has sent, because the backend may take either of two
 * credentials; otherwise the part that every request has.
 */
export function presentParts(parts: readonly SinglePart[], readPart: ReadPart): readonly SinglePart[] {
  const sent = parts.filter((part) => !alwaysThere.has(part.kind) && readPart(part).length > 0)
  return sent.length > 0 ? sent : parts.filter((part) => alwaysThere.has(part.kind)).slice(0, 1)
}

/** Returns the values of the present parts, each with the part's name, so that a header cannot pass as an address. */
function readFirst(parts: readonly SinglePart[], readPart: ReadPart): readonly string[] {
  return presentParts(parts, readPart).flatMap((part) =>
    readPart(part).map((value) => `${partName(part)}=${value}`),
  )
}
