import type { Policy } from '../../../policy.ts'
import { partName, type SinglePart } from '../../../policy/partition.ts'
import type { KeyBody } from '../body/key-body.ts'
import type { BodyPart } from '../body/names/body-names.ts'
import { readPart, type KeySource } from '../part-values.ts'
import { MAX_READINGS, partitionKeysOf } from '../partition-key.ts'
import { pathOf } from './sign-in-target.ts'

/** A part of a key in one of its spellings in the request. `readValues` returns the part's values in a request with this spelling only. */
type Spelled = {
  readonly part: SinglePart
  readonly spelling: string
  readonly readValues: () => readonly string[]
}

/**
 * Returns the accounts that a request names under a policy: the spelling of each, by its partition key.
 *
 * A partition key covers all spellings that some backend treats as one account, such as those in another letter case. To a stricter backend
 * these are several accounts, and an attacker could own one of them to get a known device for another. A device is therefore bound to one
 * spelling. If two spellings in a request have the same key, that key is left out.
 *
 * @returns without keys in which an address takes the place of the account, because the request does not name one; empty if a spelling,
 *   such as one of blanks, has no key: the backend may sign in to this account, under which nothing is counted
 */
export function spelledAccounts(policy: Policy, source: KeySource): ReadonlyMap<string, string> {
  const accounts = new Map<string, string>()
  const ambiguous = new Set<string>()
  const all = combinations(policy, source)
  if (all.some((spelled) => spelled.some(({ readValues }) => readValues().length === 0))) return accounts
  for (const spelled of all) {
    const keys = partitionKeysOf(policy, (part) => valuesIn(part, spelled, source))
    const [key] = keys
    // Several keys: the spelling can be read as several values.
    if (key === undefined || keys.length > 1) continue
    if (accounts.has(key)) ambiguous.add(key)
    accounts.set(key, JSON.stringify(spelled.map(({ part, spelling }) => [partName(part), spelling])))
  }
  for (const key of ambiguous) accounts.delete(key)
  return accounts
}

/** Combines one spelling of each part. Of `first`, only one part at a time has values. */
function combinations({ partition }: Policy, source: KeySource): readonly (readonly Spelled[])[] {
  let found: Spelled[][] = [[]]
  for (const part of partition) {
    const spelled =
      part.kind === 'first' ? part.of.flatMap((each) => spellingsOf(each, source)) : spellingsOf(part, source)
    // Parts that every client shares, such as `host`, have no spelling.
    if (part.kind !== 'first' && !namesAccount(part)) continue
    found = found.flatMap((before) => spelled.map((one) => [...before, one])).slice(0, MAX_READINGS + 1)
  }
  return found.length > MAX_READINGS ? [] : found.filter(({ length }) => length > 0)
}

/** Returns the values of a part in a request with these spellings only. */
function valuesIn(part: SinglePart, spelled: readonly Spelled[], source: KeySource): readonly string[] {
  if (!namesAccount(part)) return readPart(part, source)
  return spelled.find((one) => one.part === part)?.readValues() ?? []
}

/** Whether a part of a key can name the account of a sign-in attempt: clients can send any value without proof. */
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
      // A device is bound to the path of its request in any case.
      return readPart(part, source).length > 0 ? [whole('')] : []
    default:
      return []
  }
}

/**
 * Returns each value of the member, without JSON escapes. To a backend that reads both JSON and forms, `ann+a` is a different account in
 * each, and an attacker could own the first one.
 */
function spelledMembers(part: BodyPart, body: KeyBody | undefined): Spelled[] {
  const found = body?.find(part).values.filter(({ isExtra }) => !isExtra)
  const values = new Map(
    found?.map((value) => [value.isEscaped ? `escaped:${value.text}` : `plain:${value.text}`, value]),
  )
  if (!body || values.size > MAX_READINGS) return []
  return Array.from(values, ([spelling, value]) => ({
    part,
    spelling,
    readValues: () => body.readingsOf(value, part).usual,
  }))
}

/**
 * Returns each query parameter whose name could be the part's, each read in a query of its own. A parameter with a blank value has no
 * values, but is returned too.
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

/** Maximum number of parameters. No sign-in has more; a request with more counts by account. */
const MAX_PARAMETERS = 32
