import { hash, timingSafeEqual } from 'node:crypto'
import { doAtOnce, type Steps } from '../../../shared/steps.ts'
import { linesOf } from '../../http/fields/header-lines.ts'
import type { ClientRequest } from '../../http/message/messages.ts'
import type { ListEntry, Policy, Rule } from '../../policy.ts'
import { createAddressSetInSteps } from '../../request/addresses/address-set.ts'
import type { ClientAddress } from '../../request/addresses/client-address.ts'
import { parseAddress, parseAddressRange, type AddressRange } from '../../request/addresses/ip-address.ts'
import { canonicalCredentials, withoutBlanksAround } from '../keys/credentials/credentials.ts'
import { hasTooManyCredentials, possibleSpellings } from '../keys/credentials/possible-spellings.ts'

type WithLines = Pick<ClientRequest, 'rawHeaders'>

/** `allowList`, `denyList` and the rules' `overrides`, compiled once. */
export type ClientLists = {
  /** Whether to refuse a request before any rule. */
  denies(client: ClientAddress, request: WithLines): boolean
  /** Whether a request is exempt from all rules and bans. */
  allows(client: ClientAddress, request: WithLines): boolean
  /**
   * Those of the policies that apply: neither `allowList` nor the list of their own rule has the client. Where an override
   * of a rule names the client, its policy takes the place of the rule's.
   */
  applying(policies: readonly Policy[], client: ClientAddress, request: WithLines): readonly Policy[]
}

type List = (client: ClientAddress, request: WithLines) => boolean

const none: readonly Policy[] = []

export type WrittenLists = {
  readonly allowList: readonly ListEntry[]
  readonly denyList: readonly ListEntry[]
  readonly rules: readonly Rule[]
}

export function compileClientLists(lists: WrittenLists): ClientLists {
  return doAtOnce(compileClientListsInSteps(lists))
}

export function* compileClientListsInSteps(lists: WrittenLists): Steps<ClientLists> {
  const isAllowed = yield* compileList(lists.allowList, isInOnlyLine)
  const isDenied = yield* compileList(lists.denyList, isInAnyLine)
  const ofPolicies = new Map<Policy, List>()
  for (const { policy, allowList = [] } of lists.rules) {
    const list = yield* compileList(allowList, isInOnlyLine)
    if (list) ofPolicies.set(policy, list)
    yield
  }
  const overrides = new Map<Policy, readonly { readonly isMeant: List; readonly policy: Policy }[]>()
  for (const { policy, overrides: written = [] } of lists.rules) {
    const compiled: { readonly isMeant: List; readonly policy: Policy }[] = []
    for (const { clients, policy: override } of written) {
      // Nobody gains by a guess: not more requests by one that may be wrong, nor the usual number by one that nobody makes.
      const isMeant = yield* compileList(clients, override.quota < policy.quota ? isInAnyLine : isInOnlyLine)
      if (isMeant) compiled.push({ isMeant, policy: override })
    }
    if (compiled.length > 0) overrides.set(policy, compiled)
    yield
  }
  return {
    denies: isDenied ?? (() => false),
    allows: isAllowed ?? (() => false),
    applying(policies, client, request) {
      if (policies.length === 0) return policies
      if (isAllowed?.(client, request)) return none
      const applying =
        ofPolicies.size === 0
          ? policies
          : policies.filter((policy) => !ofPolicies.get(policy)?.(client, request))
      if (overrides.size === 0) return applying
      return applying.map(
        (policy) => overrides.get(policy)?.find(({ isMeant }) => isMeant(client, request))?.policy ?? policy,
      )
    },
  }
}

/** The headers that the lists look at: of these the backend gets one value and no alias, as of those that rules count by. */
export function listedHeaders({ allowList, denyList, rules }: WrittenLists): string[] {
  const ofRules = rules.flatMap(({ allowList = [], overrides = [] }) => [
    ...allowList,
    ...overrides.flatMap(({ clients }) => clients),
  ])
  const entries = [...allowList, ...denyList, ...ofRules]
  return entries.flatMap((entry) => (entry.kind === 'header' ? [entry.name] : []))
}

/** Undefined where nothing is on the list. */
function* compileList(entries: readonly ListEntry[], isIn: typeof isInOnlyLine): Steps<List | undefined> {
  if (entries.length === 0) return undefined
  const hasRanges = entries.some((entry) => entry.kind === 'ip')
  const addresses = yield* createAddressSetInSteps(readRanges(entries))
  const secrets = new Map<string, Buffer[]>()
  for (const entry of entries) {
    if (entry.kind !== 'header') continue
    const digests = secrets.get(entry.name) ?? []
    digests.push(Buffer.from(entry.sha256, 'hex'))
    secrets.set(entry.name, digests)
    yield
  }
  return (client, request) => {
    const address = hasRanges ? parseAddress(client.address) : undefined
    if (address && addresses.has(address)) return true
    for (const [name, digests] of secrets)
      if (isIn(linesOf(request.rawHeaders, name), name, digests)) return true
    return false
  }
}

/** One at a time, as each is asked for. */
function* readRanges(entries: readonly ListEntry[]): Generator<AddressRange> {
  for (const entry of entries) {
    if (entry.kind !== 'ip') continue
    for (const text of entry.ranges) {
      const range = parseAddressRange(text)
      if (range) yield range
    }
  }
}

/** Only a single line counts: of several it is unknown which one the backend takes, and nobody is let through by a guess. */
function isInOnlyLine(lines: readonly string[], name: string, digests: readonly Buffer[]): boolean {
  const [line] = lines
  if (lines.length !== 1 || line === undefined) return false
  return isOneOf(name === 'authorization' ? canonicalCredentials(line) : withoutBlanksAround(line), digests)
}

/**
 * Any line counts, and whatever a backend may read in it: a client cannot hide credentials by sending others beside them, nor by a
 * spelling that only a lenient backend takes.
 */
function isInAnyLine(lines: readonly string[], name: string, digests: readonly Buffer[]): boolean {
  return lines.some((line) => {
    if (name !== 'authorization') return isOneOf(withoutBlanksAround(line), digests)
    return hasTooManyCredentials(line) || possibleSpellings(line).some((one) => isOneOf(one, digests))
  })
}

/** Compares with every secret in constant time, so that the time reveals nothing of them. */
function isOneOf(value: string, digests: readonly Buffer[]): boolean {
  const digest = hash('sha256', Buffer.from(value, 'latin1'), 'buffer')
  let isKnown = false
  for (const known of digests) isKnown = timingSafeEqual(digest, known) || isKnown
  return isKnown
}
