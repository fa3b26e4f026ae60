import { hash } from 'node:crypto'
import type { Policy } from '../../policy.ts'
import { partName, type SinglePart } from '../../policy/partition.ts'

/** 128 bits of a hash in base64url, rounded up to whole characters. */
const hashLength = 22

const hashedKey = new RegExp(`^h:[\\w-]{${hashLength}}$`)

/** Whether a text has the form of a key that is a hash. */
export function isHashedKey(text: string): boolean {
  return hashedKey.test(text)
}

/** Whether keys of the policy hash an address with other parts: whoever knows these finds the address by trying all. */
export function mayHashAddress({ partition }: Pick<Policy, 'partition'>): boolean {
  if (partition.length === 1) return false
  return partition
    .flatMap((part) => (part.kind === 'first' ? part.of : [part]))
    .some(({ kind }) => kind === 'ip' || kind === 'network')
}

/** The one key of a policy that counts all clients together. */
export const keyOfAll = 'global'

/**
 * The values of a part of a key, each in the one spelling that it counts by; none where it is absent. They are several
 * where backends would not read the same one.
 */
export type ReadPart = (part: SinglePart) => readonly string[]

/** Maximum number of clients that a request can count for under a policy. No legitimate one can be read in so many ways. */
export const maxReadings = 8
/** Replaces values if there are more than that: the request is rejected. */
export const tooManyValues = Array.from({ length: maxReadings + 1 }, (_, i) => String(i))

/**
 * Identifies the client that a request counts for under a policy. If a part has several values, these are as many
 * clients, of which the backend serves one, and all are counted: otherwise a client could pass for another one each time
 * with a value that the backend does not read.
 *
 * By address or network alone, the key is the address or network itself, and of a policy for all clients together it is `global`; so it
 * is where these are the values left of `first`. Else it is `h:` and a hash of all parts, as headers can carry
 * secrets and hosts can be long; each part is hashed after its length, so that parts are unambiguously separated.
 *
 * @returns each key once; none where a part is absent: the policy does not apply to the request. More than `maxReadings`
 *   where there would be more, but not all of them
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
      .slice(0, maxReadings + 1)
  }
  return texts.map(hashedKeyOf)
}

/** @param text the parts of a key, which are different for each client */
export function hashedKeyOf(text: string): string {
  return `h:${hash('sha256', text, 'base64url').slice(0, hashLength)}`
}

/** Whether every request has the part. Any other part is in a request only if its client has sent it. */
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
 * The parts of `first` that a request counts by: all that the client has sent, as the backend may take either of two
 * credentials; without any, the part that every request has.
 */
export function presentParts(parts: readonly SinglePart[], readPart: ReadPart): readonly SinglePart[] {
  const sent = parts.filter((part) => !alwaysThere.has(part.kind) && readPart(part).length > 0)
  return sent.length > 0 ? sent : parts.filter((part) => alwaysThere.has(part.kind)).slice(0, 1)
}

/** Returns the values of the first part that has one, with its name, so that a header cannot pass for an address. */
function readFirst(parts: readonly SinglePart[], readPart: ReadPart): readonly string[] {
  return presentParts(parts, readPart).flatMap((part) =>
    readPart(part).map((value) => `${partName(part)}=${value}`),
  )
}
