import { isRecord, recordsIn } from '../operate/admin-client.ts'
import { writeClient } from '../operate/client-argument.ts'

/** The content of `sluice top`: the state of a gateway at an instant, and its rates since the previous snapshot. */
export type Snapshot = {
  /** ISO 8601, UTC. */
  readonly at: string
  readonly gateway: string
  /** The reason why the gateway does not answer; undefined if it does. */
  readonly away?: string
  readonly status?: Readonly<Record<string, unknown>>
  readonly breakerOpen?: boolean
  /** The number of worker processes that answered. */
  readonly workersAnswering?: number
  /** False if the settings file was wrong, or could not be applied, when it was last read. */
  readonly lastReadSucceeded?: boolean
  readonly connections?: number
  /** All requests per second; null without a previous reading, as at the start. */
  readonly requests?: number | null
  /** The rules with the most refusals first. */
  readonly rules: readonly RuleRates[]
  readonly clients: readonly LimitedClient[]
}

/** Rates per second. `refused` includes refusals during an outage of Redis, and requests sent to another route. */
export type RuleRates = {
  readonly name: string
  readonly allowed: number
  readonly refused: number
  readonly shadow: number
}

export type LimitedClient = {
  readonly rule: string
  readonly client: string
  readonly label?: string
  readonly refusals: number
  readonly resetSeconds: number
}

type Counts = { readonly allowed: number; readonly refused: number; readonly shadow: number }

/** The counts of a gateway since its start. */
export type Reading = {
  readonly atMs: number
  readonly requests: number
  readonly rules: ReadonlyMap<string, Counts>
}

/** Reads the data of a `status` event of the admin listener. Missing values, and values that are not numbers, count as 0. */
export function readCounts(event: Readonly<Record<string, unknown>>): Reading {
  const requests = Array.isArray(event['requests']) ? event['requests'].reduce(addUp, 0) : 0
  const decisions: unknown[] = Array.isArray(event['decisions']) ? event['decisions'] : []
  const rules = decisions.flatMap((pair): [string, Counts][] => {
    const [name, outcomes] = Array.isArray(pair) ? (pair as unknown[]) : []
    if (typeof name !== 'string' || !isRecord(outcomes)) return []
    const sumOf = (...names: readonly string[]): number =>
      names.map((each) => outcomes[each]).reduce(addUp, 0)
    const counts = {
      allowed: sumOf('allowed', 'local', 'open'),
      refused: sumOf('refused', 'routed', 'unavailable'),
      shadow: sumOf('shadow'),
    }
    return [[name, counts]]
  })
  return { atMs: timeOf(event['at']), requests, rules: new Map(rules) }
}

/** @param before the previous reading of the same gateway; undefined at the start */
export function makeSnapshot(
  gateway: string,
  event: Readonly<Record<string, unknown>>,
  before: Reading | undefined,
): Snapshot {
  const now = readCounts(event)
  // A gateway that was restarted in between counts from 0 again.
  const known = before && before.requests <= now.requests && before.atMs < now.atMs ? before : undefined
  const seconds = known ? (now.atMs - known.atMs) / 1000 : NaN
  const rules = Array.from(now.rules, ([name, counts]): RuleRates => {
    const rateOf = (of: keyof Counts): number =>
      known ? Math.max(0, counts[of] - (known.rules.get(name)?.[of] ?? 0)) / seconds : 0
    return { name, allowed: rateOf('allowed'), refused: rateOf('refused'), shadow: rateOf('shadow') }
  })
  return {
    at: new Date(now.atMs).toISOString(),
    gateway,
    ...(isRecord(event['status']) && { status: event['status'] }),
    breakerOpen: event['breakerOpen'] === true,
    ...(typeof event['workersAnswering'] === 'number' && { workersAnswering: event['workersAnswering'] }),
    ...(isRecord(event['config']) && { lastReadSucceeded: event['config']['lastReadSucceeded'] !== false }),
    connections: numberOf(event['connections']),
    requests: known ? (now.requests - known.requests) / seconds : null,
    rules: rules.sort(byRefusals),
    clients: recordsIn(event['limited'], 'clients').map(
      ({ policy, client, label, refusals, resetSeconds }) => ({
        rule: String(policy),
        client: writeClient(client),
        ...(typeof label === 'string' && { label }),
        refusals: numberOf(refusals),
        resetSeconds: numberOf(resetSeconds),
      }),
    ),
  }
}

function byRefusals(a: RuleRates, b: RuleRates): number {
  return b.refused - a.refused || b.shadow - a.shadow || b.allowed - a.allowed || (a.name < b.name ? -1 : 1)
}

function addUp(sum: number, value: unknown): number {
  return sum + numberOf(value)
}

/** The maximum distance from 1970 that a `Date` can represent (ECMA-262, section 21.4.1.1). */
const MAX_TIME_MS = 8.64e15

function timeOf(value: unknown): number {
  const ms = numberOf(value)
  return Math.abs(ms) <= MAX_TIME_MS ? ms : 0
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}
