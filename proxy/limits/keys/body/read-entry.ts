import { partName, type PartitionPart, type SinglePart } from '../../../policy/partition.ts'
import { alwaysThere, MAX_READINGS, type ReadPart } from '../partition-key.ts'
import type { KeyBody } from './key-body.ts'
import type { BodyPart } from './names/body-names.ts'
import { MemberValues, type Counted, type Values } from './member-values.ts'
import type { UnreadKey } from '../../../telemetry/telemetry.ts'

/** The values of one entry of a key, for each element of a batch. */
export type ReadEntry = {
  readonly elements: number
  /** Returns the values of an element. A value counts once in each item that has it. */
  readonly valuesOf: (element: number) => Values
  readonly unread: UnreadKey | undefined
  /** Whether there are more values than can be counted. */
  readonly isCut: boolean
  /** Whether a backend may find further values in the body. */
  readonly isIncomplete?: boolean
  /** Whether the request has no value for the entry, so that the policy does not apply. */
  readonly isAbsent: boolean
}

const none: Values = new Map()
const once: Counted = { requests: 1, isExtra: false }

/** @param isOnly whether this is the only entry of the key */
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
  const counted: Values = new Map(values.map((value) => [value, once]))
  const isCut = values.length > MAX_READINGS
  return { elements: 1, valuesOf: () => counted, unread: undefined, isCut, isAbsent: values.length === 0 }
}

/**
 * Reads the parts of `first` that the request has, because the backend may take any of them. An element of a batch without any counts by
 * the part that every request has, otherwise by address.
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
  // If the address is the only part left, it is the key itself.
  const rest = last && !(isOnly && last.kind === 'ip') ? namedValues(last, readPart) : []
  const fallback: Values = new Map(rest.map((value) => [value, once]))
  const always: Values = others.length > 0 ? new Map(others.map((value) => [value, once])) : fallback
  const byElement = new Map<number, Values>()
  for (const { found } of bodies)
    for (const [element, values] of found) {
      const together = byElement.get(element)
      if (together) for (const [value, count] of values) together.set(value, count)
      else byElement.set(element, new Map([...others.map((value) => [value, once] as const), ...values]))
    }
  return {
    elements: Math.max(...bodies.map(({ elements }) => elements)),
    valuesOf: (element) => withUsual(byElement.get(element), always),
    unread: bodies.find(({ unread }) => unread)?.unread,
    isCut: bodies.some(({ isCut }) => isCut) || others.length > MAX_READINGS * parts.length,
    isIncomplete: bodies.some(({ isIncomplete }) => isIncomplete),
    isAbsent: false,
  }
}

/** Adds the usual values of the request to values that only few backends find. */
function withUsual(values: Values | undefined, always: Values): Values {
  if (!values) return always
  return values.values().some(({ isExtra }) => !isExtra) ? values : new Map([...always, ...values])
}

/** Returns the values, each prefixed with the part's name, as in `partitionKeysOf`. */
function namedValues(part: SinglePart, readPart: ReadPart): string[] {
  return readPart(part).map((value) => `${partName(part)}=${value}`)
}

/** The values of a member, by the elements of a batch that have the member. */
type ReadMember = ReadEntry & { readonly found: ReadonlyMap<number, Values> }

function readBodyPart(part: BodyPart, body: KeyBody, prefix: string): ReadMember {
  const found = body.find(part)
  const member = new MemberValues(prefix)
  let { isCut } = found
  for (const value of found.values) {
    if (isCut) break
    member.startItem(value.element, value.item)
    const { usual, extra } = body.readingsOf(value, part)
    for (const text of usual) member.add(text, value.isExtra ?? false)
    for (const text of extra) member.add(text, true)
    isCut = member.isCut || usual.length > MAX_READINGS
  }
  const { byElement } = member
  return {
    elements: found.elements,
    found: byElement,
    valuesOf: (element) => byElement.get(element) ?? none,
    unread: found.unread ?? (found.isIncomplete ? 'value' : undefined),
    isCut,
    isIncomplete: found.isIncomplete ?? false,
    isAbsent: false,
  }
}
