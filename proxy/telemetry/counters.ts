import type { Policy } from '../policy.ts'
import type {
  ClientListName,
  ConnectionRefusal,
  DecisionOutcome,
  ErrorPlace,
  EvictedConnection,
  KeySetOutcome,
  Rejection,
  TableUse,
  TokenOutcome,
  Telemetry,
  UpstreamFailure,
} from './telemetry.ts'
import { createDurationHistogram, type DurationHistogram } from './histogram.ts'

/** What the request path has reported so far. Only the telemetry made with it writes to it. */
export type Counters = {
  /** By the first digit of the status, 0 for a client that left before the response. */
  readonly requests: Float64Array
  readonly rejections: Record<Rejection, number>
  readonly lists: Record<ClientListName, number>
  /** By the policy's name, which comes from the limits table: never longer than that. */
  readonly decisions: Map<string, Record<DecisionOutcome, number>>
  /** By the policy's name, of those that read what a request costs. */
  readonly unreadableCosts: Map<string, number>
  readonly tokens: Record<TokenOutcome, number>
  readonly keySets: Record<KeySetOutcome, number>
  readonly upstreamFailures: Record<UpstreamFailure, number>
  readonly errors: Record<ErrorPlace, number>
  readonly requestDuration: DurationHistogram
  readonly storeDuration: DurationHistogram
  readonly upstreamDuration: DurationHistogram
  readonly tables: Map<string, () => TableUse>
  storeFailures: number
  resets: number
  breakerOpen: boolean
  readonly refusedConnections: Record<ConnectionRefusal, number>
  readonly evictedConnections: Record<EvictedConnection, number>
  connections: number
  upgrades: number
  /** How the last request that was forwarded ended; `unknown` before the first. */
  upstream: 'unknown' | 'available' | 'unavailable'
}

// Redis on the same network answers in well under a millisecond; STORE_TIMEOUT is 100 ms by default.
const STORE_BOUNDS_MS = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000]
const REQUEST_BOUNDS_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000]

/** @param policies those known at the start: their decisions are counted from 0, others' from their first */
export function createCounters(policies: readonly Policy[]): Counters {
  return {
    requests: new Float64Array(6),
    rejections: {
      target: 0,
      host: 0,
      framing: 0,
      'headers-too-large': 0,
      'ambiguous-key': 0,
      'body-too-large': 0,
      timeout: 0,
      other: 0,
    },
    lists: { allow: 0, deny: 0 },
    decisions: new Map(policies.map((policy) => [policy.name, noDecisions()])),
    unreadableCosts: new Map(policies.flatMap(({ name, cost }) => (cost?.settle ? [[name, 0]] : []))),
    tokens: { verified: 0, invalid: 0, 'unknown-key': 0, 'no-keys': 0 },
    keySets: { loaded: 0, failed: 0 },
    upstreamFailures: { refused: 0, timeout: 0, reset: 0, protocol: 0, busy: 0, other: 0 },
    errors: { request: 0, process: 0 },
    requestDuration: createDurationHistogram(REQUEST_BOUNDS_MS),
    storeDuration: createDurationHistogram(STORE_BOUNDS_MS),
    upstreamDuration: createDurationHistogram(REQUEST_BOUNDS_MS),
    tables: new Map(),
    storeFailures: 0,
    resets: 0,
    breakerOpen: false,
    refusedConnections: { total: 0, client: 0, 'proxy-header': 0, tls: 0 },
    evictedConnections: { idle: 0, busy: 0 },
    connections: 0,
    upgrades: 0,
    upstream: 'unknown',
  }
}

/**
 * The request path's way to write to the counters: additions to numbers, nothing else. They become Prometheus' metrics
 * only when somebody asks for those.
 */
export function createTelemetry(counters: Counters): Telemetry {
  return {
    requestFinished(status, durationMs) {
      const statusClass = Math.trunc(status / 100)
      counters.requests[statusClass] = (counters.requests[statusClass] ?? 0) + 1
      counters.requestDuration.observe(durationMs)
    },
    requestRejected(reason) {
      counters.rejections[reason]++
    },
    listed(list) {
      counters.lists[list]++
    },
    decided(policy, outcome) {
      let decisions = counters.decisions.get(policy.name)
      if (!decisions) counters.decisions.set(policy.name, (decisions = noDecisions()))
      decisions[outcome]++
    },
    costUnreadable({ name }) {
      counters.unreadableCosts.set(name, (counters.unreadableCosts.get(name) ?? 0) + 1)
    },
    tokenRead(outcome) {
      counters.tokens[outcome]++
    },
    keySetLoaded(outcome) {
      counters.keySets[outcome]++
    },
    storeAnswered(durationMs) {
      counters.storeDuration.observe(durationMs)
    },
    storeFailed() {
      counters.storeFailures++
    },
    clientReset() {
      counters.resets++
    },
    breakerChanged(state) {
      counters.breakerOpen = state === 'open'
    },
    upstreamAnswered(durationMs) {
      counters.upstream = 'available'
      counters.upstreamDuration.observe(durationMs)
    },
    upstreamFailed(kind) {
      if (kind !== 'busy') counters.upstream = 'unavailable'
      counters.upstreamFailures[kind]++
    },
    connectionOpened() {
      counters.connections++
    },
    connectionClosed() {
      counters.connections--
    },
    connectionRefused(reason) {
      counters.refusedConnections[reason]++
    },
    connectionEvicted(state) {
      counters.evictedConnections[state]++
    },
    upgradeOpened() {
      counters.upgrades++
    },
    upgradeClosed() {
      counters.upgrades--
    },
    errorCaught(place) {
      counters.errors[place]++
    },
    observeTable(name, read) {
      counters.tables.set(name, read)
    },
  }
}

function noDecisions(): Record<DecisionOutcome, number> {
  return { allowed: 0, refused: 0, shadow: 0, local: 0, open: 0, unavailable: 0 }
}
