import { partName, type PartitionPart, type SinglePart } from '../../../policy/partition.ts'
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
  /** A value is too long to be cleaned: it may be of any account. */
  readonly hasUncleaned?: boolean
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
  const always: Values = others.length > 0 ? new Map(others.map((value) => [value, 1])) : fallback
  const byElement = new Map<number, Map<string, number>>()
  for (const { found } of bodies)
    for (const [element, values] of found) {
      const together = byElement.get(element)
      if (together) for (const [value, count] of values) together.set(value, count)
      else byElement.set(element, new Map([...others.map((value) => [value, 1] as const), ...values]))
    }
  return {
    elements: Math.max(...bodies.map(({ elements }) => elements)),
    valuesOf: (element) => byElement.get(element) ?? always,
    unread: bodies.find(({ unread }) => unread)?.unread,
    isCut: bodies.some(({ isCut }) => isCut) || others.length > maxReadings * parts.length,
    hasUncleaned: bodies.some(({ hasUncleaned }) => hasUncleaned),
    isAbsent: false,
  }
}

/** With the name of the part before it, as in the keys of `partitionKeysOf`. */
function namedValues(part: SinglePart, readPart: ReadPart): string[] {
  return readPart(part).map((value) => `${partName(part)}=${value}`)
}

/** The values of a member, with the elements of a batch that have some. */
type ReadMember = ReadEntry & { readonly found: ReadonlyMap<number, Values> }

function readBodyPart(part: BodyPart, body: KeyBody, prefix: string): ReadMember {
  const found = body.find(part)
  const byElement = new Map<number, Map<string, number>>()
  const distinct = new Set<string>()
  let { isCut } = found
  let last = -1
  /** Of the item. Those of one item follow one another. */
  let ofItem: string[] = []
  for (const { text, element, item } of found.values) {
    if (item !== last) ofItem = []
    last = item
    let values = byElement.get(element)
    if (!values) byElement.set(element, (values = new Map<string, number>()))
    for (const value of body.valuesOf(text, part)) {
      if (ofItem.includes(value)) continue
      ofItem.push(value)
      distinct.add(value)
      const named = prefix + value
      values.set(named, (values.get(named) ?? 0) + 1)
    }
    isCut ||= ofItem.length > maxReadings
    if (isCut || distinct.size > MAX_DISTINCT) break
  }
  return {
    elements: found.elements,
    found: byElement,
    valuesOf: (element) => byElement.get(element) ?? none,
    unread: found.unread ?? (found.hasUncleaned ? 'value' : undefined),
    isCut: isCut || distinct.size > MAX_DISTINCT,
    hasUncleaned: found.hasUncleaned ?? false,
    isAbsent: false,
  }
}

/** Values that are told apart: of more there are more clients than a request may count for. */
const MAX_DISTINCT = 128
