import { windowFrom } from '../../../limits/algorithms/calendar/calendar-windows.ts'
import type { Charge, Decision } from '../../../limits/limiter.ts'
import { delayMsOf } from '../../../limits/waiting/delay-of.ts'
import { reservedUnits, type Policy, type Rule } from '../../../policy.ts'
import { ClientTable } from '../client-table.ts'
import type { LoggedRequest } from '../logs/logged-request.ts'
import { TimeSeries } from '../time-series.ts'
import { needsOf } from '../unknowns.ts'

/** The decisions of a table about the requests of a log. */
export type Tally = {
  requests: number
  /** Answered with an error for their form, by reason. */
  readonly rejected: Map<string, number>
  denied: number
  /** Of these, the requests that some rule counts, and those that some rule refuses. */
  limited: number
  refused: number
  /** Refused before they were counted, as their client was banned by a rule. */
  banned: number
  /** Left out, and in none of these numbers. */
  excluded: number
  /** Requests whose time is before the previous one's by more than is reordered. */
  late: number
  readonly rules: readonly RuleTally[]
  readonly clients: ClientTable
  /** For all requests, then for each rule. */
  readonly series: TimeSeries
  fromMs: number
  toMs: number
}

export type RuleTally = {
  readonly policy: Policy
  requests: number
  refused: number
  /** Requests that would have waited for their turn. */
  delayed: number
  /** Bans that its `ban` has led to. */
  bans: number
  /** By criterion that the log does not have: the number of requests. */
  readonly unknown: Map<string, number>
}

/** The outcome of a request: `rejected` for its form; `passed` to the backend, or answered by the gateway itself. */
export type Outcome = 'passed' | 'refused' | 'denied' | 'rejected' | 'excluded'

/** Maximum number of clients that are counted separately, over all rules: they take up to 160 MB. */
const MAX_CLIENTS = 2_000_000

/** Counts the outcomes of requests for a `Tally`. */
export class OutcomeCounter {
  readonly tally: Tally
  readonly #places: ReadonlyMap<string, number>
  readonly #needs: readonly ReturnType<typeof needsOf>[]
  readonly #haveNeeds: boolean

  /** @param seed of the table of clients */
  constructor(table: readonly Rule[], seed: number) {
    const rules = table.map(({ policy }) => tallyOf(policy))
    this.#places = new Map(rules.map(({ policy }, place) => [policy.name, place]))
    this.#needs = table.map(needsOf)
    this.#haveNeeds = this.#needs.some((each) => each.length > 0)
    this.tally = {
      requests: 0,
      denied: 0,
      limited: 0,
      refused: 0,
      banned: 0,
      excluded: 0,
      late: 0,
      rejected: new Map(),
      rules,
      clients: new ClientTable(MAX_CLIENTS, seed),
      series: new TimeSeries(1 + rules.length),
      fromMs: Infinity,
      toMs: -Infinity,
    }
  }

  /** A request has come. @param isLate by more than is put in order */
  begin(timeMs: number, isLate: boolean): void {
    const { tally } = this
    if (isLate) tally.late += 1
    tally.requests += 1
    tally.fromMs = Math.min(tally.fromMs, timeMs)
    tally.toMs = Math.max(tally.toMs, timeMs)
  }

  end(outcome: Outcome, nowMs: number): void {
    if (outcome !== 'excluded') this.tally.series.add(0, nowMs, outcome === 'refused')
  }

  reject(reason: string): Outcome {
    increment(this.tally.rejected, reason)
    return 'rejected'
  }

  deny(): Outcome {
    this.tally.denied += 1
    return 'denied'
  }

  exclude(): Outcome {
    this.tally.requests -= 1
    this.tally.excluded += 1
    return 'excluded'
  }

  /** Notes the parts of a request that its rules need, and that its log line does not have. */
  recordUnknown(policies: readonly Policy[], logged: LoggedRequest): void {
    if (!this.#haveNeeds) return
    for (const { name } of policies) {
      const place = this.#places.get(name)
      if (place === undefined) continue
      for (const { what, isKnown } of this.#needs[place] ?? [])
        if (!isKnown(logged)) increment(this.tally.rules[place]?.unknown, what)
    }
  }

  recordBan({ name }: Policy): void {
    const rule = this.#ruleAt(name)
    if (rule) rule.bans += 1
  }

  /** Counts a decision under each of its rules. */
  count(charges: readonly Charge[], decision: Decision, nowMs: number): void {
    this.tally.limited += 1
    if (decision.outcome === 'refused') this.tally.refused += 1
    if (decision.outcome === 'unavailable') return
    const counted = new Set<Policy>()
    // Counters in this process give a state for each charge.
    for (const [at, charge] of charges.entries()) {
      const { policy } = charge
      const rule = this.#ruleAt(policy.name)
      if (!rule) continue
      const state = decision.states[at]
      const exceeded = state?.exceeded ?? false
      const refused = decision.outcome === 'refused' ? policy === decision.refusedBy && exceeded : exceeded
      this.#countClient(charge, refused, nowMs)
      if (!counted.has(policy)) {
        rule.requests += 1
        this.tally.series.add(1 + (this.#places.get(policy.name) ?? -1), nowMs, refused)
        if (refused) rule.refused += 1
        if (decision.outcome === 'allowed' && state && delayMsOf(state) > 0) rule.delayed += 1
      }
      counted.add(policy)
    }
  }

  /** Requests of a banned client still count as demand in the table of clients, but in no counter. */
  countBanned(charges: readonly Charge[], nowMs: number): Outcome {
    for (const charge of charges)
      if (this.#places.has(charge.policy.name)) this.#countClient(charge, true, nowMs)
    this.tally.refused += 1
    this.tally.banned += 1
    return 'refused'
  }

  #countClient(
    { policy, partitionKey, units = reservedUnits(policy) }: Charge,
    refused: boolean,
    nowMs: number,
  ): void {
    const { quota } = policy
    const windowMs = windowFrom(policy, nowMs)
    const place = this.#places.get(policy.name) ?? -1
    this.tally.clients.add(place, partitionKey, { units, refused, nowMs, windowMs, quota })
  }

  #ruleAt(name: string): RuleTally | undefined {
    return this.tally.rules[this.#places.get(name) ?? -1]
  }
}

function tallyOf(policy: Policy): RuleTally {
  return { policy, requests: 0, refused: 0, delayed: 0, bans: 0, unknown: new Map<string, number>() }
}

function increment(counts: Map<string, number> | undefined, what: string): void {
  counts?.set(what, (counts.get(what) ?? 0) + 1)
}
