import { composeAddresses } from '../../../app/addresses/trusted-proxies.ts'
import type { GatewaySettings } from '../../../config/settings.ts'
import { recordRefusal } from '../../../limits/clients/banning.ts'
import { Settlement } from '../../../limits/costs/settlement.ts'
import { decideRequest } from '../../../limits/decide.ts'
import { countsNothing, createUnservedRequest, noEntries } from '../../../limits/explain/unserved-request.ts'
import type { Charge, Decision } from '../../../limits/limiter.ts'
import { compileTable, type RequestTable } from '../../../limits/request-table.ts'
import { compileRules } from '../../../limits/rules/rule-table.ts'
import { MemoryLimiter } from '../../../limits/store/memory/limiter.ts'
import type { DecideOptions, RequestContext, Verdict } from '../../../limits/verdict.ts'
import { requestedUnits, type Policy, type Rule } from '../../../policy.ts'
import type { Geo } from '../../../request/addresses/geo/geo.ts'
import type { AddressLists } from '../../../request/addresses/lists/address-lists.ts'
import type { Excluded } from '../excluded.ts'
import { Heap } from '../heap.ts'
import type { LoggedRequest } from '../logs/logged-request.ts'
import { headOf, toClientRequest } from '../messages.ts'
import { createLogBans, type LogBans } from './bans.ts'
import { OutcomeCounter, type Outcome, type Tally } from './tally.ts'

export type Simulation = {
  readonly tally: Tally
  /** Adds a request. Requests must be added in the order of their times. */
  readonly add: (request: LoggedRequest) => Outcome
}

/** The seed of the tables of clients and counters. */
const SEED = 1

export type SimulationOptions = {
  /** The networks of trusted proxies. */
  readonly proxies: readonly string[]
  /** The host of requests whose log line does not have it. */
  readonly defaultHost: string | undefined
  /** The clients whose requests are left out. */
  readonly excluded: Excluded
  /** The address lists that the settings name. */
  readonly lists: AddressLists
  /** The databases that the settings name. */
  readonly geo: Geo | undefined
}

/**
 * Creates a simulation that passes requests through the rules and the counters of a gateway with these settings, on the log's own clock.
 */
export function simulate(
  settings: GatewaySettings,
  { proxies, defaultHost, excluded, lists, geo }: SimulationOptions,
): Simulation {
  const table = compileTable(settings, composeAddresses(settings, { ranges: proxies }), lists, geo)
  const replay = new LogReplay(table, settings.storeMaxKeys, defaultHost, excluded)
  return { tally: replay.tally, add: (request) => replay.add(request) }
}

/** Passes the requests of a log through a table, on the log's own clock. */
class LogReplay {
  readonly #table: RequestTable
  readonly #defaultHost: string | undefined
  readonly #excluded: Excluded
  readonly #counter: OutcomeCounter
  readonly #limiter: MemoryLimiter
  readonly #bans: LogBans
  readonly #current: Omit<DecideOptions, 'limiter'>
  /** The rules that are limited to some hosts, compiled without their hosts. */
  readonly #withoutHosts: ReturnType<typeof compileRules>
  readonly #haveHosts: boolean
  readonly #haveRequestedUnits: boolean
  /** Future events: the ends of requests in flight, when their cost becomes known. */
  readonly #pending = new Heap<() => void>()
  #clockMs = 0

  constructor(table: RequestTable, maxKeys: number, defaultHost: string | undefined, excluded: Excluded) {
    const now = (): number => this.#clockMs
    const ofSomeHosts = table.written.filter(({ hosts }) => hosts !== undefined)
    this.#table = table
    this.#defaultHost = defaultHost
    this.#excluded = excluded
    this.#counter = new OutcomeCounter(table.written, SEED)
    this.#limiter = new MemoryLimiter({ maxKeys, seed: SEED, now, wallNow: now })
    this.#bans = createLogBans(now)
    this.#current = {
      ...table.limits,
      entries: this.#bans.entries,
      tokens: undefined,
      devices: undefined,
      readsBodies: false,
    }
    this.#withoutHosts = compileRules(ofSomeHosts.map(withoutHosts))
    this.#haveHosts = ofSomeHosts.length > 0
    this.#haveRequestedUnits = table.written.some(({ policy }) => requestedUnits(policy) !== undefined)
  }

  get tally(): Tally {
    return this.#counter.tally
  }

  add(logged: LoggedRequest): Outcome {
    const outcome = this.#take(logged)
    this.#counter.end(outcome, this.#clockMs)
    return outcome
  }

  #take(logged: LoggedRequest): Outcome {
    const host = this.#defaultHost
    const request = logged.host === undefined && host !== undefined ? { ...logged, host } : logged
    const isLate = request.timeMs < this.#clockMs
    this.#goOnTo(Math.max(this.#clockMs, request.timeMs))
    this.#counter.begin(request.timeMs, isLate)
    const peer = this.#table.limits.addresses.readPeer(request.ip)
    if (!peer) return this.#counter.reject('no client address')
    return this.#act(request, createUnservedRequest(toClientRequest(request), peer, this.#table.head))
  }

  /** Moves the clock forward, and ends the requests that end by then. */
  #goOnTo(nowMs: number): void {
    while (this.#pending.firstMs <= nowMs) {
      this.#clockMs = Math.max(this.#clockMs, this.#pending.firstMs)
      this.#pending.pop()?.()
    }
    this.#clockMs = nowMs
  }

  #act(logged: LoggedRequest, context: RequestContext): Outcome {
    const counter = this.#counter
    const verdict = decideAtOnce(context, { ...this.#current, limiter: this.#countingFor(context) })
    if (this.#isListed(context)) return counter.exclude()
    if (isOfProxy(context)) this.tally.ofProxies += 1
    if (verdict.outcome === 'rejected' && verdict.rejection !== 'ambiguous-key')
      return counter.reject(verdict.reason)
    switch (verdict.outcome) {
      case 'denied':
        return counter.deny()
      case 'answered':
        return 'passed'
      case 'banned':
        // A ban of the address takes effect before the rules are matched, so match them here.
        if (context.charges.length === 0)
          decideAtOnce(context, { ...this.#current, entries: noEntries, limiter: countsNothing })
        else this.#recordUnknowns(logged, context)
        if (this.#hasExcludedKey(context)) return counter.exclude()
        return counter.countBanned(this.#unitsOf(context.charges), this.#clockMs)
      case 'rejected':
        this.#recordUnknowns(logged, context)
        return counter.reject(verdict.reason)
      case 'allowed':
      case 'refused':
      case 'unavailable':
        this.#recordUnknowns(logged, context)
        if (this.#hasExcludedKey(context)) return counter.exclude()
        return this.#record(logged, this.#unitsOf(context.charges), verdict)
      case 'forward':
      case 'busy':
      case 'gone':
        this.#recordUnknowns(logged, context)
        return 'passed'
    }
  }

  /** Returns a limiter that counts requests, except those of excluded clients. */
  #countingFor(context: RequestContext): DecideOptions['limiter'] {
    return {
      decide: (charges) => {
        const isLeftOut = this.#isListed(context) || this.#hasExcludedKey(context)
        return (isLeftOut ? countsNothing : this.#limiter).decide(this.#unitsOf(charges))
      },
    }
  }

  #isListed({ clientAddress, request }: RequestContext): boolean {
    return this.#excluded.lists.allows(clientAddress, request)
  }

  #hasExcludedKey({ charges }: RequestContext): boolean {
    return charges.some(({ partitionKey }) => this.#excluded.keys.has(partitionKey))
  }

  /** Returns the charges with units that are known from a log. Units stated in a body are unknown. */
  #unitsOf(charges: readonly Charge[]): readonly Charge[] {
    return this.#haveRequestedUnits ? charges.map(withKnownUnits) : charges
  }

  #recordUnknowns(logged: LoggedRequest, { request, head, applying }: RequestContext): void {
    // Rules that are limited to some hosts might have matched.
    if (head && request.httpVersion === '1.0' && this.#haveHosts) {
      const matched = this.#withoutHosts.match(head.target, logged.method, {}, head.host)
      this.#counter.recordUnknown(matched, logged)
    }
    this.#counter.recordUnknown(applying, logged)
  }

  #record(logged: LoggedRequest, charges: readonly Charge[], decision: Decision): Outcome {
    this.#counter.count(charges, decision, this.#clockMs)
    if (decision.outcome === 'refused') {
      const refused = (policy: Policy, partitionKey: string): void =>
        this.#recordBannable(policy, partitionKey)
      recordRefusal({ refused }, charges, decision)
      return 'refused'
    }
    if (decision.outcome !== 'allowed' || !decision.states.some(({ reservation }) => reservation))
      return 'passed'
    const request = { method: logged.method, headers: {} }
    const settlement = new Settlement(
      { limiter: this.#limiter, request, ...settlesSilently },
      decision.states,
    )
    this.#pending.push(this.#clockMs + (logged.durationMs ?? 0), () => {
      if (logged.status !== undefined) settlement.onHead(headOf(logged.status))
      settlement.finish()
    })
    return 'passed'
  }

  #recordBannable(policy: Policy, partitionKey: string): void {
    if (this.#bans.refused(policy, partitionKey)) this.#counter.recordBan(policy)
  }
}

/** A log does not contain the cost of requests, so nothing of a settlement is reported. */
const settlesSilently = {
  limitHeaders: (): string[] => [],
  onUnread: (): void => undefined,
  requestBytes: (): number => 0,
}

/** Decides without waiting, because a replay has neither tokens nor bodies nor Redis. */
function decideAtOnce(context: RequestContext, options: DecideOptions): Verdict {
  const verdict = decideRequest(context, options)
  if (verdict instanceof Promise) throw new Error('a logged request cannot be decided at once')
  return verdict
}

/** Whether a request counts for the address of a trusted proxy. */
function isOfProxy({ peer, clientAddress }: RequestContext): boolean {
  return peer.trusted && clientAddress.prefix === peer.client.prefix
}

function withoutHosts({ policy, match, except }: Rule): Rule {
  return { policy, match, except }
}

function withKnownUnits(charge: Charge): Charge {
  const requested = requestedUnits(charge.policy)
  return requested ? { ...charge, units: requested.otherwise ?? 1 } : charge
}
