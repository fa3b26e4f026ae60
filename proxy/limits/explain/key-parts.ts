import { hash } from 'node:crypto'
import { readPart, type KeySource } from '../keys/part-values.ts'
import { alwaysThere, presentParts } from '../keys/partition-key.ts'
import type { Policy } from '../../policy.ts'
import { partName, type SinglePart } from '../../policy/partition.ts'

/**
 * A part of a rule's key, and the values that a request has for it; empty if the part is absent. Values that the client sent may be secret,
 * and are hashed.
 */
export type KeyPart = { readonly part: string; readonly values: readonly string[] }

/** The key parts of a request under a policy: of `first`, every part that the client has sent, otherwise the one that every request has. */
export function keyPartsOf({ partition }: Policy, source: KeySource): KeyPart[] {
  return partition.flatMap((part) => {
    if (part.kind !== 'first') return keyPart(part, source)
    const present = presentParts(part.of, (each) => readPart(each, source))
    if (present.length > 0) return present.map((each) => keyPart(each, source))
    return { part: part.of.map(partName).join(' or '), values: [] }
  })
}

function keyPart(part: SinglePart, source: KeySource): KeyPart {
  const values = readPart(part, source)
  const show = (value: string): string =>
    alwaysThere.has(part.kind) ? value : `sha256:${hash('sha256', Buffer.from(value, 'latin1'))}`
  return { part: partName(part), values: values.map(show) }
}
