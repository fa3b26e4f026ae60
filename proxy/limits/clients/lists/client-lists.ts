import { doAtOnce, type Steps } from '../../../../shared/steps.ts'
import type { ClientRequest } from '../../../http/message/client-request.ts'
import type { ListEntry, ListFile, Policy, Rule } from '../../../policy.ts'
import { createAddressSetInSteps } from '../../../request/addresses/address-set.ts'
import type { ClientAddress } from '../../../request/addresses/client-address.ts'
import {
  noAddressLists,
  type AddressList,
  type AddressLists,
} from '../../../request/addresses/lists/address-lists.ts'
import {
  parseAddress,
  parseClientRange,
  type AddressRange,
  type IpAddress,
} from '../../../request/addresses/ip-address.ts'
import { readAnyLine, readOnlyLine, SecretHeaders } from './secret-headers.ts'

type WithLines = Pick<ClientRequest, 'rawHeaders'>

/** `allowList`, `denyList` and the `overrides` of rules, compiled once. */
export type ClientLists = {
  /** Returns the list that denies a request, before any rule is applied. */
  findDenial(client: ClientAddress, request: WithLines): Denial | undefined
  /** Whether a request is exempt from all rules and bans. */
  allows(client: ClientAddress, request: WithLines): boolean
  /**
   * Returns the policies that apply: the client is neither in `allowList` nor in the list of the policy's rule. If an override of a rule
   * names the client, its policy replaces the rule's.
   */
  applying(policies: readonly Policy[], client: ClientAddress, request: WithLines): readonly Policy[]
}

/** The list that denies a request: `denyList` for an entry in the settings file, the path of the list file as written, or `crowdsec`. */
export type Denial = { readonly list: string; readonly location?: string }

type List = (client: ClientAddress, request: WithLines) => boolean

type Override = {
  readonly namesClient: List
  /** Whether some backend may find the client in a request. Only set for headers of an override with a lower quota than its rule. */
  readonly mayNameClient: List | undefined
  readonly policy: Policy
}

const none: readonly Policy[] = []

export type WrittenLists = {
  readonly allowList: readonly ListEntry[]
  readonly denyList: readonly ListEntry[]
  readonly rules: readonly Rule[]
}

/** @param files the address lists that the lists name */
export function compileClientLists(lists: WrittenLists, files = noAddressLists): ClientLists {
  return doAtOnce(compileClientListsInSteps(lists, files))
}

/** The same in steps, so that requests are served while thousands of entries are compiled. */
export function* compileClientListsInSteps(lists: WrittenLists, files: AddressLists): Steps<ClientLists> {
  const certain = new SecretHeaders(readOnlyLine)
  const possible = new SecretHeaders(readAnyLine)
  const { crowdsec } = files
  const parse = createAddressParser()
  const compileList = createListCompiler(parse, files)
  const isAllowed = yield* compileList(lists.allowList, certain)
  const isDenied = yield* compileList(lists.denyList.map(withoutFiles), possible)
  const denyingFiles = lists.denyList
    .flatMap(filesOf)
    .map((file) => ({ file, list: files.of(file.location) }))
  const ofPolicies = new Map<Policy, List>()
  for (const { policy, allowList = [] } of lists.rules) {
    const list = yield* compileList(allowList, certain)
    if (list) ofPolicies.set(policy, list)
    yield
  }
  const overrides = new Map<Policy, readonly Override[]>()
  for (const { policy, overrides: written = [] } of lists.rules) {
    const compiled: Override[] = []
    for (const { clients, policy: override } of written) {
      const namesClient = yield* compileList(clients, certain)
      if (!namesClient) continue
      const isLower = override.quota < policy.quota
      const guessed = isLower ? clients.filter(({ kind }) => kind === 'header') : []
      const mayNameClient = yield* compileList(guessed, possible)
      compiled.push({ namesClient, mayNameClient, policy: override })
    }
    if (compiled.length > 0) overrides.set(policy, compiled)
    yield
  }
  return {
    findDenial(client, request) {
      if (isDenied?.(client, request)) return byDenyList
      const address = denyingFiles.length > 0 || crowdsec ? parse(client.address) : undefined
      if (!address) return undefined
      const denial = findFile(denyingFiles, address)
      if (denial || !crowdsec?.has(address)) return denial
      // Third parties make CrowdSec's decisions, and may be wrong about a client that this table allows.
      return isAllowed?.(client, request) ? undefined : byCrowdsec
    },
    allows: isAllowed ?? (() => false),
    applying(policies, client, request) {
      if (policies.length === 0) return policies
      if (isAllowed?.(client, request)) return none
      const applying =
        ofPolicies.size === 0
          ? policies
          : policies.filter((policy) => !ofPolicies.get(policy)?.(client, request))
      if (overrides.size === 0) return applying
      return applying.map((policy) => policyFor(policy, overrides.get(policy), client, request))
    },
  }
}

/**
 * Returns the policy of the first override that names the client, or the rule's own. If some backend may find another client with a lower
 * quota, the lower quota applies. Credentials raise the quota only if every backend reads them.
 */
function policyFor(
  policy: Policy,
  overrides: readonly Override[] | undefined,
  client: ClientAddress,
  request: WithLines,
): Policy {
  if (!overrides) return policy
  let chosen = overrides.find(({ namesClient }) => namesClient(client, request))?.policy ?? policy
  for (const { namesClient, mayNameClient, policy: other } of overrides)
    if (other.quota < chosen.quota && mayNameClient?.(client, request) && !namesClient(client, request))
      chosen = other
  return chosen
}

/** The headers that the lists test. As with the headers in keys of rules, the backend gets a single value of each, and no alias. */
export function listedHeaders({ allowList, denyList, rules }: WrittenLists): string[] {
  const ofRules = rules.flatMap(({ allowList = [], overrides = [] }) => [
    ...allowList,
    ...overrides.flatMap(({ clients }) => clients),
  ])
  const entries = [...allowList, ...denyList, ...ofRules]
  return entries.flatMap((entry) => (entry.kind === 'header' ? [entry.name] : []))
}

const byDenyList: Denial = { list: 'denyList' }
const byCrowdsec: Denial = { list: 'crowdsec' }

function findFile(
  files: readonly { readonly file: ListFile; readonly list: AddressList }[],
  address: IpAddress,
): Denial | undefined {
  for (const { file, list } of files)
    if (list.has(address)) return { list: file.file, location: file.location }
  return undefined
}

/** The function that this returns yields undefined for an empty list. */
function createListCompiler(parse: typeof parseAddress, files: AddressLists) {
  return function* compileList(
    entries: readonly ListEntry[],
    secrets: SecretHeaders,
  ): Steps<List | undefined> {
    if (entries.length === 0) return undefined
    const hasAddresses = entries.some((entry) => entry.kind === 'ip')
    const addresses = yield* createAddressSetInSteps(readRanges(entries))
    const lists = entries.flatMap(filesOf).map(({ location }) => files.of(location))
    const listed = new Set<string>()
    for (const entry of entries) {
      if (entry.kind === 'header') for (const id of secrets.add(entry)) listed.add(id)
      yield
    }
    return (client, request) => {
      const address = hasAddresses ? parse(client.address) : undefined
      if (address && (addresses.has(address) || lists.some((list) => list.has(address)))) return true
      if (listed.size === 0) return false
      for (const id of secrets.find(request.rawHeaders)) if (listed.has(id)) return true
      return false
    }
  }
}

function filesOf(entry: ListEntry): readonly ListFile[] {
  return entry.kind === 'ip' ? (entry.files ?? []) : []
}

function withoutFiles(entry: ListEntry): ListEntry {
  return entry.kind === 'ip' ? { kind: 'ip', ranges: entry.ranges } : entry
}

/** Parses an address once for all lists that look it up one after another; there may be thousands of lists. */
function createAddressParser(): typeof parseAddress {
  let lastText = ''
  let lastAddress: ReturnType<typeof parseAddress>
  return (text) => {
    if (text !== lastText) lastAddress = parseAddress(text)
    lastText = text
    return lastAddress
  }
}

/** Parses entries on demand, one at a time. */
function* readRanges(entries: readonly ListEntry[]): Generator<AddressRange> {
  for (const entry of entries) {
    if (entry.kind !== 'ip') continue
    for (const text of entry.ranges) {
      const range = parseClientRange(text)
      if (range) yield range
    }
  }
}
