import type { Policy } from '../../../policy.ts'
import { partName, type SinglePart } from '../../../policy/partition.ts'
import type { KeyBody } from '../body/key-body.ts'
import type { BodyPart } from '../body/names/body-names.ts'
import { readPart, type KeySource } from '../part-values.ts'
import { maxReadings, partitionKeysOf } from '../partition-key.ts'
import { pathOf } from './sign-in-target.ts'

/** A part of a key in one of the spellings that the request has for it, and the values that the part has if it has this one only. */
type Spelled = {
  readonly part: SinglePart
  readonly spelling: string
  readonly readValues: () => readonly string[]
}

/**
 * The accounts that a request names under a policy, by partition key, each with its spelling.
 *
 * A partition key covers all spellings that some backend takes for one account, such as those in other letter case. To a stricter backend
 * these are several accounts, and somebody could own one of them in order to get devices for another. So a device belongs to a spelling;
 * and where two spellings have the same key, the account belongs to neither.
 *
 * @returns none for keys in which an address stands for the account, which the request does not name; and none at all where a spelling has
 *   no key, as one of blanks has none: the backend may take that account, of which nothing counts, for the one that is meant
 */
export function spelledAccounts(policy: Policy, source: KeySource): ReadonlyMap<string, string> {
  const accounts = new Map<string, string>()
  const ambiguous = new Set<string>()
  const all = combinations(policy, source)
  if (all.some((spelled) => spelled.some(({ readValues }) => readValues().length === 0))) return accounts
  for (const spelled of all) {
    const keys = partitionKeysOf(policy, (part) => valuesIn(part, spelled, source))
    const [key] = keys
    // More than one: a spelling that can be read as several values.
    if (key === undefined || keys.length > 1) continue
    if (accounts.has(key)) ambiguous.add(key)
    accounts.set(key, JSON.stringify(spelled.map(({ part, spelling }) => [partName(part), spelling])))
  }
  for (const key of ambiguous) accounts.delete(key)
  return accounts
}

/** Combines one spelling of each part; of `first` only one part at a time has values. */
function combinations({ partition }: Policy, source: KeySource): readonly (readonly Spelled[])[] {
  let found: Spelled[][] = [[]]
  for (const part of partition) {
    const spelled =
      part.kind === 'first' ? part.of.flatMap((each) => spellingsOf(each, source)) : spellingsOf(part, source)
    // Parts that every client shares, such as `host`, have no spelling.
    if (part.kind !== 'first' && !namesAccount(part)) continue
    found = found.flatMap((before) => spelled.map((one) => [...before, one])).slice(0, maxReadings + 1)
  }
  return found.length > maxReadings ? [] : found.filter(({ length }) => length > 0)
}

/** Returns what the key would have of a part if the request had this spelling only. */
function valuesIn(part: SinglePart, spelled: readonly Spelled[], source: KeySource): readonly string[] {
  if (!namesAccount(part)) return readPart(part, source)
  return spelled.find((one) => one.part === part)?.readValues() ?? []
}

/** Whether a part of a key can name the account that somebody tries to sign in to: clients write it without proof. */
export function namesAccount(part: SinglePart): boolean {
  return inRequest.has(part.kind) || (part.kind === 'header' && part.name !== 'authorization')
}

const inRequest: ReadonlySet<SinglePart['kind']> = new Set(['body', 'path', 'query'])

function spellingsOf(part: SinglePart, source: KeySource): Spelled[] {
  if (!namesAccount(part)) return []
  const whole = (spelling: string): Spelled => ({ part, spelling, readValues: () => readPart(part, source) })
  switch (part.kind) {
    case 'body':
      return spelledMembers(part, source.body)
    case 'header': {
      const sent = source.headers[part.name]
      return typeof sent === 'string' && sent !== '' ? [whole(sent)] : []
    }
    case 'query':
      return spelledParameters(part, source)
    case 'path':
      // A device is known for the path of its request anyway.
      return readPart(part, source).length > 0 ? [whole('')] : []
    default:
      return []
  }
}

/**
 * Returns each value of the member, without the escapes of JSON. To a backend that reads both, `ann+a` in JSON and in a form are two
 * accounts, and somebody could own the first one.
 */
function spelledMembers(part: BodyPart, body: KeyBody | undefined): Spelled[] {
  const found = body?.find(part).values.filter(({ isExtra }) => !isExtra)
  const values = new Map(
    found?.map((value) => [value.isEscaped ? `escaped:${value.text}` : `plain:${value.text}`, value]),
  )
  if (!body || values.size > maxReadings) return []
  return Array.from(values, ([spelling, value]) => ({
    part,
    spelling,
    readValues: () => body.readingsOf(value, part).usual,
  }))
}

/**
 * Returns each parameter of the query whose name could be the part's, alone in a query of its own, including one of blanks, which has no
 * values.
 */
function spelledParameters(part: SinglePart & { readonly name: string }, source: KeySource): Spelled[] {
  const { target } = source
  const path = pathOf(target.forwardTarget)
  const pairs = new Set(target.forwardTarget.slice(path.length + 1).split('&', MAX_PARAMETERS + 1))
  if (pairs.size > MAX_PARAMETERS) return []
  const read = (query: string): readonly string[] =>
    readPart(part, { ...source, target: { ...target, forwardTarget: `${path}?${query}` } })
  return [...pairs].flatMap((spelling) => {
    const readValues = (): readonly string[] => read(spelling)
    const isPart = readValues().length > 0 || (!isEmpty.test(spelling) && read(`${spelling}x`).length > 0)
    return isPart ? [{ part, spelling, readValues }] : []
  })
}

/** A parameter without a value. */
const isEmpty = /^[^=]*=?$/

/** Maximum number of parameters; a client with more counts by account, as no sign-in has so many. */
const MAX_PARAMETERS = 32
