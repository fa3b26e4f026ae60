import { noteRefusal } from '../../limits/clients/banning.ts'
import { windowFrom } from '../../limits/algorithms/calendar/calendar-windows.ts'
import { Settlement } from '../../limits/costs/settlement.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { readListsOf } from '../settings/read-lists.ts'
import { createMemoryLimiter } from '../../limits/store/memory/limiter.ts'
import type { Charge, Decision } from '../../limits/limiter.ts'
import { requestedUnits, reservedUnits, type Policy } from '../../policy.ts'
import { compileRules } from '../../limits/rules/rule-table.ts'
import type { Geo } from '../../request/addresses/geo/geo.ts'
import type { AddressLists } from '../../request/addresses/lists/address-lists.ts'
import { composeAddresses } from '../../app/addresses/trusted-proxies.ts'
import { delayMsOf } from '../../limits/waiting/delay-of.ts'
import { decideRequest } from '../../limits/decide.ts'
import type { AskedRequest, DecisionTable, Verdict } from '../../limits/verdict.ts'
import { countsNothing, createUnservedRequest, noEntries } from '../../limits/explain/unserved-request.ts'
import { compileTable } from '../../limits/request-table.ts'
import { createLogBans } from './bans.ts'
import { ClientTable } from './client-table.ts'
import { readExcluded, type Excluded } from './excluded.ts'
import type { LoggedRequest } from './logs/logged-request.ts'
import { Heap } from './heap.ts'
import { headOf, toClientRequest } from './messages.ts'
import { TimeSeries } from './time-series.ts'
import { needsOf } from './unknowns.ts'

/** What a table would have done to the requests of a log. */
export type Tally = {
  requests: number
  /** Answered with an error for their form, by reason. */
  readonly rejected: Map<string, number>
  denied: number
  /** Of these, requests that some rule counts, and that some rule refuses. */
  limited: number
  refused: number
  /** Refused before they were counted, as their client was banned by a rule. */
  banned: number
  /** Left out, and in none of these numbers. */
  excluded: number
  /** Requests whose time is before that of one before it, by more than is put in order. */
  late: number
  readonly rules: readonly RuleTally[]
  readonly clients: ClientTable
  /** Of all requests, and then of each rule. */
  readonly series: TimeSeries
  fromMs: number
  toMs: number
}

export type RuleTally = {
  readonly policy: Policy
  requests: number
  refused: number
  /** Those that would have waited for their turn. */
  delayed: number
  /** Bans that its `ban` has led to. */
  bans: number
  /** By what the log does not tell: of how many requests. */
  readonly unknown: Map<string, number>
}

/** The outcome of a request: `rejected` for its form; `passed` to the backend, or answered by the gateway itself. */
export type Outcome = 'passed' | 'refused' | 'denied' | 'rejected' | 'excluded'

export type Simulation = {
  readonly tally: Tally
  /** In the order of their times. */
  readonly add: (request: LoggedRequest) => Outcome
}

/** Clients of all rules together that are told apart: 160 MB if they all are needed. */
const MAX_CLIENTS = 2_000_000

/**
 * Takes requests through the rules and the counters of a gateway with these settings, on the log's own clock.
 *
 * @param proxies those that are trusted: networks
 * @param defaultHost the host of requests whose log line does not have it
 * @param excluded clients whose requests are left out
 * @param lists those that the settings name; unless given, they are read
 * @param geo the databases that they name
 */
export function simulate(
  settings: GatewaySettings,
  proxies: readonly string[],
  defaultHost: string | undefined,
  excluded: Excluded = readExcluded([]),
  lists: AddressLists = readListsOf(settings).lists,
  geo?: Geo,
): Simulation {
  const table = compileTable(settings, composeAddresses(settings, { ranges: proxies }), lists, geo)
  let clockMs = 0
  const seed = 1
  const limiter = createMemoryLimiter({
    maxKeys: settings.storeMaxKeys,
    seed,
    now: () => clockMs,
    wallNow: () => clockMs,
  })
  const rules = table.written.map(({ policy }): RuleTally => ({
    policy,
    requests: 0,
    refused: 0,
    delayed: 0,
    bans: 0,
    unknown: new Map<string, number>(),
  }))
  const bans = createLogBans(() => clockMs)
  const banning = {
    refused(policy: Policy, partitionKey: string) {
      const rule = rules[places.get(policy.name) ?? -1]
      if (bans.refused(policy, partitionKey) && rule) rule.bans += 1
    },
  }
  const places = new Map(rules.map(({ policy }, place) => [policy.name, place]))
  const needs = table.written.map(needsOf)
  const haveNeeds = needs.some((each) => each.length > 0)
  const haveRequestedUnits = table.written.some(({ policy }) => requestedUnits(policy) !== undefined)
  const clients = new ClientTable(MAX_CLIENTS, seed)
  /** Events to come: ends of requests in flight, whose cost is known then. */
  const pending = new Heap<() => void>()
  const tally: Tally = {
    requests: 0,
    rejected: new Map(),
    denied: 0,
    limited: 0,
    refused: 0,
    banned: 0,
    excluded: 0,
    late: 0,
    rules,
    clients,
    series: new TimeSeries(1 + rules.length),
    fromMs: Infinity,
    toMs: -Infinity,
  }
  const ofSomeHosts = table.written.filter(({ hosts }) => hosts !== undefined)
  const withoutHosts = compileRules(
    ofSomeHosts.map(({ policy, match, except }) => ({ policy, match, except })),
  )

  const placesOf = (policies: readonly Policy[]): number[] =>
    policies.flatMap(({ name }) => places.get(name) ?? [])

  function noteUnknowns(logged: LoggedRequest, { request, head, applying }: AskedRequest): void {
    // Rules of some hosts might have matched.
    if (head && request.httpVersion === '1.0' && ofSomeHosts.length > 0)
      noteUnknown(placesOf(withoutHosts.match(head.target, logged.method, {}, head.host)), logged)
    if (haveNeeds && applying.length > 0) noteUnknown(placesOf(applying), logged)
  }

  function noteUnknown(of: readonly number[], request: LoggedRequest): void {
    for (const place of of) {
      for (const { what, isKnown } of needs[place] ?? [])
        if (!isKnown(request)) increment(rules[place]?.unknown, what)
    }
  }

  function count(charges: readonly Charge[], decision: Decision): void {
    if (decision.outcome === 'unavailable') return
    const counted = new Set<Policy>()
    // Counters in this process give a state for each charge.
    for (const [at, { policy, partitionKey, units = reservedUnits(policy) }] of charges.entries()) {
      const place = places.get(policy.name) ?? -1
      const rule = rules[place]
      if (!rule) continue
      const exceeded = decision.states[at]?.exceeded ?? false
      const refused = decision.outcome === 'refused' ? policy === decision.refusedBy && exceeded : exceeded
      const { quota } = policy
      const windowMs = windowFrom(policy, clockMs)
      clients.add(place, partitionKey, { units, refused, nowMs: clockMs, windowMs, quota })
      if (!counted.has(policy)) {
        rule.requests += 1
        tally.series.add(1 + place, clockMs, refused)
        if (refused) rule.refused += 1
        const state = decision.states[at]
        if (decision.outcome === 'allowed' && state && delayMsOf(state) > 0) rule.delayed += 1
      }
      counted.add(policy)
    }
  }

  // A log does not have the cost of requests: rules that read it are not replayed.
  const settling = { limiter, limitHeaders: noLimitHeaders, onUnread: ignore, requestBytes: () => 0 }

  const inForce = {
    ...table,
    entries: bans.entries,
    tokens: undefined,
    devices: undefined,
    readsBodies: false,
  }
  const withoutBans = { ...inForce, entries: noEntries, limiter: countsNothing }

  function isListed({ clientAddress, request }: AskedRequest): boolean {
    return excluded.lists.allows(clientAddress, request)
  }

  function hasExcludedKey({ charges }: AskedRequest): boolean {
    return charges.some(({ partitionKey }) => excluded.keys.has(partitionKey))
  }

  /** Where the body of the request says its units, a log does not know them. */
  function unitsOf(charges: readonly Charge[]): readonly Charge[] {
    return haveRequestedUnits ? charges.map(withKnownUnits) : charges
  }

  /** Counts, unless the client is left out. */
  function countingFor(asked: AskedRequest): DecisionTable['limiter'] {
    return {
      decide: (charges) =>
        (isListed(asked) || hasExcludedKey(asked) ? countsNothing : limiter).decide(unitsOf(charges)),
    }
  }

  function act(logged: LoggedRequest, asked: AskedRequest): Outcome {
    const verdict = decideAtOnce(asked, { ...inForce, limiter: countingFor(asked) })
    if (verdict.outcome === 'rejected' && verdict.reason !== 'ambiguous-key') return reject(verdict.why)
    if (isListed(asked)) return exclude()
    switch (verdict.outcome) {
      case 'denied':
        tally.denied += 1
        return 'denied'
      case 'answered':
        return 'passed'
      case 'banned':
        // By its address, before any rule was looked at.
        if (asked.charges.length === 0) decideAtOnce(asked, withoutBans)
        else noteUnknowns(logged, asked)
        return hasExcludedKey(asked) ? exclude() : refuseBanned(unitsOf(asked.charges))
      case 'rejected':
        noteUnknowns(logged, asked)
        return reject(verdict.why)
      case 'allowed':
      case 'refused':
      case 'unavailable':
        noteUnknowns(logged, asked)
        if (hasExcludedKey(asked)) return exclude()
        tally.limited += 1
        return note(logged, unitsOf(asked.charges), verdict)
      case 'forward':
      case 'busy':
      case 'gone':
        noteUnknowns(logged, asked)
        return 'passed'
    }
  }

  function note(logged: LoggedRequest, charges: readonly Charge[], decision: Decision): Outcome {
    count(charges, decision)
    if (decision.outcome === 'refused') {
      tally.refused += 1
      noteRefusal(banning, charges, decision)
      return 'refused'
    }
    if (decision.outcome !== 'allowed' || !decision.states.some(({ reservation }) => reservation))
      return 'passed'
    const settlement = new Settlement(settling, decision.states)
    pending.push(clockMs + (logged.durationMs ?? 0), () => {
      if (logged.status !== undefined) settlement.onHead(headOf(logged.status))
      settlement.finish()
    })
    return 'passed'
  }

  /** What a banned client asks for is demand all the same: its window goes on in the table of clients, and in no counter. */
  function refuseBanned(charges: readonly Charge[]): Outcome {
    for (const { policy, partitionKey, units = reservedUnits(policy) } of charges) {
      const { quota } = policy
      const windowMs = windowFrom(policy, clockMs)
      const place = places.get(policy.name)
      if (place !== undefined)
        clients.add(place, partitionKey, { units, refused: true, nowMs: clockMs, windowMs, quota })
    }
    tally.refused += 1
    tally.banned += 1
    return 'refused'
  }

  function exclude(): Outcome {
    tally.requests -= 1
    tally.excluded += 1
    return 'excluded'
  }

  function reject(why: string): Outcome {
    increment(tally.rejected, why)
    return 'rejected'
  }

  function take(logged: LoggedRequest): Outcome {
    const request =
      logged.host === undefined && defaultHost !== undefined ? { ...logged, host: defaultHost } : logged
    if (request.timeMs < clockMs) tally.late += 1
    const nowMs = Math.max(clockMs, request.timeMs)
    while (pending.firstMs <= nowMs) {
      clockMs = Math.max(clockMs, pending.firstMs)
      pending.pop()?.()
    }
    clockMs = nowMs
    tally.requests += 1
    tally.fromMs = Math.min(tally.fromMs, request.timeMs)
    tally.toMs = Math.max(tally.toMs, request.timeMs)
    const peer = table.addresses.readPeer(request.ip)
    if (!peer) return reject('no client address')
    return act(request, createUnservedRequest(toClientRequest(request), peer, table.head))
  }

  return {
    tally,
    add(request) {
      const outcome = take(request)
      if (outcome !== 'excluded') tally.series.add(0, clockMs, outcome === 'refused')
      return outcome
    },
  }
}

/** Nothing of a log is waited for: neither tokens nor bodies nor Redis. */
function decideAtOnce(asked: AskedRequest, table: DecisionTable): Verdict {
  const verdict = decideRequest(asked, table)
  if (verdict instanceof Promise) throw new Error('a logged request cannot be decided at once')
  return verdict
}

const ignore = (): void => undefined
const noLimitHeaders = (): string[] => []

function withKnownUnits(charge: Charge): Charge {
  const requested = requestedUnits(charge.policy)
  return requested ? { ...charge, units: requested.otherwise ?? 1 } : charge
}

function increment(counts: Map<string, number> | undefined, what: string): void {
  counts?.set(what, (counts.get(what) ?? 0) + 1)
}
