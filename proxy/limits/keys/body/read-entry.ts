import { partName, type PartitionPart, type SinglePart } from '../../../policy.ts'
import { alwaysThere, maxReadings, type ReadPart } from '../partition-key.ts'
import type { BodyPart, KeyBody } from './key-body.ts'
import type { UnreadKey } from '../../../telemetry/telemetry.ts'

/** The values of an entry of a key, for each element of a batch. */
export type ReadEntry = {
  readonly elements: number
  /** With how many items of the element have each value. */
  readonly valuesOf: (element: number) => ReadonlyMap<string, number>
  readonly unread: UnreadKey | undefined
  /** There are more values than are counted. */
  readonly isCut: boolean
  /** Not in the request, and not in its body either: the policy does not apply. */
  readonly isAbsent: boolean
}

type Values = ReadonlyMap<string, number>

const none: Values = new Map()

/** @param isOnly there are no other entries */
export function readEntry(
  part: PartitionPart,
  readPart: ReadPart,
  body: KeyBody,
  isOnly: boolean,
): ReadEntry {
  if (part.kind === 'body') return readBodyPart(part, body, '')
  return part.kind === 'first' ? readFirst(part.of, readPart, body, isOnly) : readOther(part, readPart)
}

function readOther(part: SinglePart, readPart: ReadPart): ReadEntry {
  const values = readPart(part)
  const counted = new Map(values.map((value) => [value, 1]))
  const isCut = values.length > maxReadings
  return { elements: 1, valuesOf: () => counted, unread: undefined, isCut, isAbsent: values.length === 0 }
}

/**
 * `first`: all that the request has of it, as the backend may take either; an element of a batch that has nothing counts by the part
 * that every request has, or else by address.
 */
function readFirst(
  parts: readonly SinglePart[],
  readPart: ReadPart,
  body: KeyBody,
  isOnly: boolean,
): ReadEntry {
  const bodies = parts.flatMap((part) =>
    part.kind === 'body' ? [readBodyPart(part, body, `${partName(part)}=`)] : [],
  )
  const others = parts
    .filter(({ kind }) => kind !== 'body' && !alwaysThere.has(kind))
    .flatMap((part) => namedValues(part, readPart))
  const last = parts.find(({ kind }) => alwaysThere.has(kind))
  // Alone, an address is the key itself.
  const rest = last && !(isOnly && last.kind === 'ip') ? namedValues(last, readPart) : []
  const fallback: Values = new Map(rest.map((value) => [value, 1]))
  return {
    elements: Math.max(...bodies.map(({ elements }) => elements)),
    valuesOf(element) {
      const values = new Map(others.map((value) => [value, 1]))
      for (const { valuesOf } of bodies)
        for (const [value, count] of valuesOf(element)) values.set(value, count)
      return values.size > 0 ? values : fallback
    },
    unread: bodies.find(({ unread }) => unread)?.unread,
    isCut: bodies.some(({ isCut }) => isCut) || others.length > maxReadings * parts.length,
    isAbsent: false,
  }
}

/** With the name of the part before it, as in the keys of `partitionKeysOf`. */
function namedValues(part: SinglePart, readPart: ReadPart): string[] {
  return readPart(part).map((value) => `${partName(part)}=${value}`)
}

function readBodyPart(part: BodyPart, body: KeyBody, prefix: string): ReadEntry {
  const found = body.find(part)
  const byElement = new Map<number, Map<string, number>>()
  /** Of each item. */
  const met = new Map<number, Set<string>>()
  const distinct = new Set<string>()
  let { isCut } = found
  for (const { text, element, item } of found.values) {
    const values = byElement.get(element) ?? new Map<string, number>()
    const ofItem = met.get(item) ?? new Set<string>()
    for (const value of body.valuesOf(text, part)) {
      if (ofItem.has(value)) continue
      ofItem.add(value)
      distinct.add(value)
      values.set(prefix + value, (values.get(prefix + value) ?? 0) + 1)
    }
    byElement.set(element, values)
    met.set(item, ofItem)
    isCut ||= ofItem.size > maxReadings
    if (isCut || distinct.size > MAX_DISTINCT) break
  }
  return {
    elements: found.elements,
    valuesOf: (element) => byElement.get(element) ?? none,
    unread: found.unread,
    isCut: isCut || distinct.size > MAX_DISTINCT,
    isAbsent: false,
  }
}

/** Values that are told apart: of more there are more clients than a request may count for. */
const MAX_DISTINCT = 128
