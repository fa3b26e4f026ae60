import { countsInFlight } from '../../limits/algorithms/registry.ts'
import { describeKey } from '../../admin/api/client-name.ts'
import { maxDelayMs, type CalendarWindow, type OverPolicy } from '../../policy.ts'
import type { ClientRow } from './client-table.ts'
import type { LineCounts } from './logs/read-logs.ts'
import type { RuleTally, Tally } from './simulation/tally.ts'
import type { Series } from './time-series.ts'

/** The result of applying a table to a log. */
export type Report = {
  readonly lines: Omit<LineCounts, 'formats'> & { readonly formats: Readonly<Record<string, number>> }
  /** ISO 8601, UTC; null if there was no request. */
  readonly from: string | null
  readonly to: string | null
  readonly requests: {
    readonly total: number
    readonly limited: number
    readonly refused: number
    /** The part of `refused` whose client a rule had banned. No rule counts these requests. */
    readonly banned: number
    readonly denied: number
    /** Requests that were left out (`--exclude`). The other numbers do not include them. */
    readonly excluded: number
    /** Malformed requests, which are answered with an error, by reason. */
    readonly rejected: Readonly<Record<string, number>>
    readonly late: number
    /** Requests that count for the address of a trusted proxy, because the log does not name its client. */
    readonly ofProxies: number
    /** Requests of clients for which the table had no room. They are counted under rules, but their clients are not counted. */
    readonly untracked: number
  }
  readonly rules: readonly RuleReport[]
  /** The number of requests that began in each bucket of time since `from`, for all requests and for each rule. */
  readonly overTime: Series & {
    readonly from: string | null
    readonly bucketSeconds: number
    readonly rules: readonly (Series & { readonly name: string })[]
  }
}

export type RuleReport = {
  readonly name: string
  readonly mode: string
  readonly algorithm: string
  readonly limit: number
  readonly windowSeconds: number
  readonly calendar?: CalendarWindow
  readonly requests: number
  /** Where requests over the limit go, if they are not refused. */
  readonly over?: OverPolicy
  /** Requests that would have waited for their turn and then passed; only for rules with a delay. */
  readonly delayed?: number
  /** Requests that a shadow rule would have refused, or that a rule with `over` would have sent to another route. */
  readonly refused: number
  /** The number of bans by the rule; only for rules with `ban`. */
  readonly bans?: number
  readonly clients: number
  readonly clientsRefused: number
  /** Clients by the maximum that they requested in one window, as a fraction of their limit: see `PEAK_BOUNDS`. */
  readonly clientsByPeak: readonly number[]
  /** At most ten clients: those that requested the most in one window. */
  readonly busiest: readonly BusyClient[]
  /** Inputs of the rule that the log lacks, with the number of affected requests. */
  readonly unknown: readonly { readonly what: string; readonly requests: number }[]
}

export type BusyClient = {
  readonly client: object
  readonly requests: number
  readonly refused: number
  /** Maximum number of units requested in one window, including requests while the client was banned. */
  readonly peak: number
  /** The part of `peak` that is over the limit. */
  readonly over: number
}

const MAX_BUSY = 10
/** Upper bounds of the bins of `clientsByPeak`, as fractions of the limit. The last bin has no bound. */
const PEAK_BOUNDS = [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8] as const

/** Makes the report that is printed as text, HTML or JSON. */
export function makeReport(counts: LineCounts, tally: Tally): Report {
  const {
    requests,
    limited,
    refused,
    banned,
    denied,
    excluded,
    rejected,
    late,
    ofProxies,
    fromMs,
    toMs,
    clients,
    series,
  } = tally
  const byRule = tally.rules.map(() => new RuleClients())
  for (const row of clients.rows()) byRule[row.rule]?.add(row)
  const iso = (ms: number): string | null => (Number.isFinite(ms) ? new Date(ms).toISOString() : null)
  return {
    lines: { ...counts, formats: Object.fromEntries(counts.formats) },
    from: iso(fromMs),
    to: iso(toMs),
    requests: {
      total: requests,
      limited,
      refused,
      banned,
      denied,
      excluded,
      rejected: Object.fromEntries(rejected),
      late,
      ofProxies,
      untracked: clients.untracked,
    },
    rules: tally.rules.map((rule, place) => reportRule(rule, byRule[place] ?? new RuleClients())),
    overTime: {
      from: iso(series.fromMs ?? NaN),
      bucketSeconds: series.widthMs / 1000,
      ...series.read(0),
      rules: tally.rules.map(({ policy }, place) => ({ name: policy.name, ...series.read(1 + place) })),
    },
  }
}

function reportRule(
  { policy, requests, refused, delayed, bans, unknown }: RuleTally,
  clients: RuleClients,
): RuleReport {
  const isInFlight = countsInFlight(policy)
  return {
    name: policy.name,
    mode: policy.mode,
    algorithm: policy.algorithm,
    ...(policy.over && { over: policy.over }),
    ...(maxDelayMs(policy) > 0 && { delayed }),
    limit: policy.quota,
    windowSeconds: policy.windowMs / 1000,
    ...(policy.calendar && { calendar: policy.calendar }),
    requests,
    refused,
    ...(policy.ban && { bans }),
    clients: clients.count,
    clientsRefused: clients.refused,
    clientsByPeak: clients.byPeak,
    busiest: clients.busiest.map((row) => ({
      client: describeKey(row.key),
      requests: row.requests,
      refused: row.refused,
      peak: row.peak,
      // With a limit on requests in flight, a window can have any number of requests one after the other.
      over: isInFlight ? 0 : Math.max(0, row.peak - row.quota),
    })),
    unknown: [...unknown].map(([what, count]) => ({ what, requests: count })),
  }
}

/** The clients of one rule. */
class RuleClients {
  count = 0
  refused = 0
  readonly byPeak = Array.from({ length: PEAK_BOUNDS.length + 1 }, () => 0)
  readonly busiest: ClientRow[] = []

  add(row: ClientRow): void {
    this.count += 1
    if (row.refused > 0) this.refused += 1
    const bound = PEAK_BOUNDS.findIndex((part) => row.peak <= part * row.quota)
    const bin = bound === -1 ? PEAK_BOUNDS.length : bound
    this.byPeak[bin] = (this.byPeak[bin] ?? 0) + 1
    const last = this.busiest.at(-1)
    if (this.busiest.length === MAX_BUSY && last && !isBusier(row, last)) return
    const place = this.busiest.findIndex((other) => isBusier(row, other))
    this.busiest.splice(place === -1 ? this.busiest.length : place, 0, row)
    if (this.busiest.length > MAX_BUSY) this.busiest.pop()
  }
}

function isBusier(a: ClientRow, b: ClientRow): boolean {
  return a.peak > b.peak || (a.peak === b.peak && a.requests > b.requests)
}
