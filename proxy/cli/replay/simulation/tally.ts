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
  /** Malformed requests, which are answered with an error, by reason. */
  readonly rejected: Map<string, number>
  denied: number
  /** Requests that at least one rule counts. `refused` is the number of requests that a rule refuses. */
  limited: number
  refused: number
  /** Requests that were refused before they were counted, because a rule had banned their client. */
  banned: number
  /** Requests that were left out. The other numbers do not include them. */
  excluded: number
  /** Requests that are too far out of order to be put in their place. */
  late: number
  /** Requests that count for the address of a trusted proxy, because the log does not name its client. */
  ofProxies: number
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
  /** Number of bans by the rule. */
  bans: number
  /** The number of requests for which an input is unknown, by the name of the input. */
  readonly unknown: Map<string, number>
}

/** The outcome of a request: `rejected` if it is malformed; `passed` if it is forwarded, or answered by the gateway itself. */
export type Outcome = 'passed' | 'refused' | 'denied' | 'rejected' | 'excluded'

/** Maximum number of clients that are counted separately, for all rules together. They take up to 160 MB. */
const MAX_CLIENTS = 2_000_000

/** Counts the outcomes of requests for a `Tally`. */
export class OutcomeCounter {
  readonly tally: Tally
  readonly #places: ReadonlyMap<string, number>
  readonly #needs: readonly ReturnType<typeof needsOf>[]
  readonly #haveNeeds: boolean

  /** @param seed the seed of the table of clients */
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
      ofProxies: 0,
      rejected: new Map(),
      rules,
      clients: new ClientTable(MAX_CLIENTS, seed),
      series: new TimeSeries(1 + rules.length),
      fromMs: Infinity,
      toMs: -Infinity,
    }
  }

  /** Counts the arrival of a request. @param isLate whether it is too far out of order to be put in its place */
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

  /** Records the parts of a request that its rules need but its log line lacks. */
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
    // Counters in memory return a state for each charge.
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

  /** Counts a request of a banned client. It counts as demand in the table of clients, but not in any counter. */
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
