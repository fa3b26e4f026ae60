import { doAtOnce } from '../../../shared/steps.ts'
import type { Policy } from '../../policy.ts'
import type {
  ClientListName,
  ConnectionRefusal,
  ErrorPlace,
  EvictedConnection,
  KeySetOutcome,
  GeoUse,
  ListUse,
  PollOutcome,
  Rejection,
  ServersUse,
  TableUse,
  Telemetry,
  TokenOutcome,
} from '../telemetry.ts'
import { createDurationHistogram, REQUEST_BOUNDS_MS, type DurationHistogram } from './histogram.ts'
import {
  addPolicies,
  changePolicies,
  createPolicyCounters,
  createPolicyTelemetry,
  type PolicyCounters,
} from './policy-counters.ts'
import {
  createUpstreamCounters,
  createUpstreamTelemetry,
  DEFAULT_UPSTREAM,
  type UpstreamCounters,
} from './upstream-counters.ts'

/** The counts that the request path has reported so far. Only the telemetry of these counters writes to them. */
export type Counters = {
  /** Requests by the first digit of the status; 0 if the client disconnected before the response. */
  readonly requests: Float64Array
  readonly rejections: Record<Rejection, number>
  readonly lists: Record<ClientListName, number>
  /** Denied requests by the list that denied them. The settings name only a few lists. */
  readonly denials: Map<string, number>
  readonly crowdsecPolls: Record<PollOutcome, number>
  /** The time of the last completed poll, in milliseconds of the wall clock; 0 before the first. */
  crowdsecPolledAtMs: number
  readonly policies: PolicyCounters
  readonly tokens: Record<TokenOutcome, number>
  readonly keySets: Record<KeySetOutcome, number>
  /** Counters by route, with `default` for `upstream`. Names come only from the table of routes. */
  readonly upstreams: Map<string, UpstreamCounters>
  readonly errors: Record<ErrorPlace, number>
  readonly requestDuration: DurationHistogram
  readonly storeDuration: DurationHistogram
  readonly tables: Map<string, () => TableUse>
  servers: () => readonly ServersUse[]
  addressLists: () => readonly ListUse[]
  geoDatabases: () => readonly GeoUse[]
  storeFailures: number
  resets: number
  /** The nodes of Redis whose circuit breakers are open. The name of a single server is empty. */
  readonly openBreakers: Set<string>
  storeEvicted: number
  readonly refusedConnections: Record<ConnectionRefusal, number>
  readonly evictedConnections: Record<EvictedConnection, number>
  connections: number
  /** When the server's certificate expires, in milliseconds of the wall clock; undefined without TLS. */
  certificateExpiresAtMs: number | undefined
  upgrades: number
}

// Redis on the same network answers in well under a millisecond; STORE_TIMEOUT is 100 ms by default.
const STORE_BOUNDS_MS = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000]

/** @param policies policies known at the start, whose decisions are listed from 0; other policies are listed from their first decision */
export function createCounters(policies: readonly Policy[]): Counters {
  const ofPolicies = createPolicyCounters()
  doAtOnce(addPolicies(ofPolicies, policies))
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
      route: 0,
      other: 0,
    },
    lists: { allow: 0, deny: 0, ban: 0 },
    denials: new Map(),
    crowdsecPolls: { done: 0, failed: 0 },
    crowdsecPolledAtMs: 0,
    policies: ofPolicies,
    tokens: { verified: 0, invalid: 0, 'unknown-key': 0, 'no-keys': 0 },
    keySets: { loaded: 0, failed: 0 },
    upstreams: new Map([[DEFAULT_UPSTREAM, createUpstreamCounters()]]),
    errors: { request: 0, process: 0 },
    requestDuration: createDurationHistogram(REQUEST_BOUNDS_MS),
    storeDuration: createDurationHistogram(STORE_BOUNDS_MS),
    tables: new Map(),
    servers: () => [],
    addressLists: () => [],
    geoDatabases: () => [],
    storeFailures: 0,
    resets: 0,
    openBreakers: new Set(),
    storeEvicted: 0,
    refusedConnections: { total: 0, client: 0, 'proxy-header': 0, tls: 0 },
    evictedConnections: { idle: 0, busy: 0 },
    connections: 0,
    certificateExpiresAtMs: undefined,
    upgrades: 0,
  }
}

/**
 * Creates the telemetry with which the request path writes to the counters. It only adds to numbers. The counters become Prometheus metrics
 * only when these are requested.
 */
export function createTelemetry(counters: Counters): Telemetry {
  const telemetry: Telemetry = {
    ofUpstream(name) {
      const upstream = counters.upstreams.get(name) ?? createUpstreamCounters()
      counters.upstreams.set(name, upstream)
      return { ...telemetry, ...createUpstreamTelemetry(upstream) }
    },
    ...createUpstreamTelemetry(counters.upstreams.get(DEFAULT_UPSTREAM) ?? createUpstreamCounters()),
    ...createPolicyTelemetry(counters.policies),
    ...countRequests(counters),
    ...countStore(counters),
    ...countConnections(counters),
    *tableChanged(policies, routes) {
      yield* changePolicies(counters.policies, policies)
      const upstreams = new Set([DEFAULT_UPSTREAM, ...routes])
      for (const name of counters.upstreams.keys()) if (!upstreams.has(name)) counters.upstreams.delete(name)
    },
    observeTable(name, read) {
      counters.tables.set(name, read)
    },
    observeLists(read) {
      counters.addressLists = read
    },
    observeGeo(read) {
      counters.geoDatabases = read
    },
    observeServers(read) {
      counters.servers = read
    },
  }
  return telemetry
}

type RequestTelemetry = Pick<
  Telemetry,
  | 'requestFinished'
  | 'requestRejected'
  | 'listed'
  | 'denied'
  | 'crowdsecPolled'
  | 'tokenRead'
  | 'keySetLoaded'
  | 'errorCaught'
>

function countRequests(counters: Counters): RequestTelemetry {
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
    denied(list) {
      counters.denials.set(list, (counters.denials.get(list) ?? 0) + 1)
    },
    crowdsecPolled(outcome) {
      counters.crowdsecPolls[outcome]++
      if (outcome === 'done') counters.crowdsecPolledAtMs = Date.now()
    },
    tokenRead(outcome) {
      counters.tokens[outcome]++
    },
    keySetLoaded(outcome) {
      counters.keySets[outcome]++
    },
    errorCaught(place) {
      counters.errors[place]++
    },
  }
}

type StoreTelemetry = Pick<
  Telemetry,
  'storeAnswered' | 'storeFailed' | 'breakerChanged' | 'storeEvicted' | 'clientReset'
>

function countStore(counters: Counters): StoreTelemetry {
  return {
    storeAnswered(durationMs) {
      counters.storeDuration.observe(durationMs)
    },
    storeFailed() {
      counters.storeFailures++
    },
    breakerChanged(state, node) {
      if (state === 'open') counters.openBreakers.add(node)
      else counters.openBreakers.delete(node)
    },
    storeEvicted(keys) {
      counters.storeEvicted = keys
    },
    clientReset() {
      counters.resets++
    },
  }
}

type ConnectionTelemetry = Pick<
  Telemetry,
  | 'connectionOpened'
  | 'connectionClosed'
  | 'connectionRefused'
  | 'connectionEvicted'
  | 'certificateUsed'
  | 'upgradeOpened'
  | 'upgradeClosed'
>

function countConnections(counters: Counters): ConnectionTelemetry {
  return {
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
    certificateUsed(expiresAtMs) {
      counters.certificateExpiresAtMs = expiresAtMs
    },
    upgradeOpened() {
      counters.upgrades++
    },
    upgradeClosed() {
      counters.upgrades--
    },
  }
}
