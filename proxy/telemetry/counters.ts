import { doAtOnce, type Steps } from '../../shared/steps.ts'
import { hasBodyKey, maxDelayMs, requestedUnits, type Policy } from '../policy.ts'
import type {
  ClientListName,
  ConnectionRefusal,
  DecisionOutcome,
  DeviceOutcome,
  ErrorPlace,
  EvictedConnection,
  KeySetOutcome,
  LeaseChange,
  ListUse,
  PollOutcome,
  Rejection,
  ServersUse,
  TableUse,
  TokenOutcome,
  Telemetry,
  UnreadCost,
  UnreadKey,
  UnreadReserve,
  UpstreamFailure,
  UpstreamTelemetry,
} from './telemetry.ts'
import { createDurationHistogram, type DurationHistogram } from './histogram.ts'

/** The counts that the request path has reported so far. Only the telemetry made with it writes to it. */
export type Counters = {
  /** By the first digit of the status, 0 for a client that left before the response. */
  readonly requests: Float64Array
  readonly rejections: Record<Rejection, number>
  readonly lists: Record<ClientListName, number>
  /** By the list that refused them, of which the settings name a few. */
  readonly denials: Map<string, number>
  readonly crowdsecPolls: Record<PollOutcome, number>
  /** Of the last poll that was done, in milliseconds of the wall clock; 0 before. */
  crowdsecPolledAtMs: number
  /** By the policy's name, which comes from the limits table: never longer than that. */
  readonly decisions: Map<string, Record<DecisionOutcome, number>>
  /** By the policy's name: requests that were counted, and used more than 80 % of what their client may. */
  readonly nearLimits: Map<string, number>
  /** By the policy's name, of those under which requests wait for their turn. */
  readonly delays: Map<string, DurationHistogram>
  /** By the policy's name, of those that ban. */
  readonly bans: Map<string, number>
  /** By the policy's name, of those that read what a request costs. */
  readonly unreadableCosts: Map<string, Record<UnreadCost, number>>
  /** By the policy's name, of those that read from the request how much to reserve. */
  readonly unreadReserves: Map<string, Record<UnreadReserve, number>>
  /** By the policy's name, of those with `device`. */
  readonly devices: Map<string, DeviceCounts>
  /** By the policy's name, of those with plans, and by the plan: its own, `none` and `unknown`. */
  readonly plans: Map<string, Record<string, number>>
  /** By the policy's name, of those with `lease`: units. */
  readonly leases: Map<string, Record<LeaseChange, number>>
  /** By policy: requests that count by address, as their body does not say for whom. */
  readonly unreadKeys: Map<string, Record<UnreadKey, number>>
  readonly tokens: Record<TokenOutcome, number>
  readonly keySets: Record<KeySetOutcome, number>
  /** By the name of the route, `default` for `upstream`: names come from the table of routes only. */
  readonly upstreams: Map<string, UpstreamCounters>
  readonly errors: Record<ErrorPlace, number>
  readonly requestDuration: DurationHistogram
  readonly storeDuration: DurationHistogram
  readonly tables: Map<string, () => TableUse>
  servers: () => readonly ServersUse[]
  addressLists: () => readonly ListUse[]
  storeFailures: number
  resets: number
  breakerOpen: boolean
  storeEvicted: number
  readonly refusedConnections: Record<ConnectionRefusal, number>
  readonly evictedConnections: Record<EvictedConnection, number>
  connections: number
  upgrades: number
}

export type DeviceCounts = Record<DeviceOutcome | 'issued', number>

export type UpstreamCounters = {
  readonly failures: Record<UpstreamFailure, number>
  readonly duration: DurationHistogram
  /** From the first health check on. */
  probes: { passed: number; failed: number } | undefined
  /** How the last request that was forwarded ended; `unknown` before the first. */
  state: 'unknown' | 'available' | 'unavailable'
}

/** The name of `upstream`, beside the names of routes. */
export const DEFAULT_UPSTREAM = 'default'

// Redis on the same network answers in well under a millisecond; STORE_TIMEOUT is 100 ms by default.
const STORE_BOUNDS_MS = [0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000]
const DELAY_BOUNDS_MS = [10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000]
const REQUEST_BOUNDS_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000]

/** @param policies those known at the start: their decisions are counted from 0, others' from their first */
export function createCounters(policies: readonly Policy[]): Counters {
  const ofPolicies: PolicyCounters = {
    decisions: new Map(),
    nearLimits: new Map(),
    delays: new Map(),
    bans: new Map(),
    unreadableCosts: new Map(),
    unreadReserves: new Map(),
    devices: new Map(),
    unreadKeys: new Map(),
    plans: new Map(),
    leases: new Map(),
  }
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
    ...ofPolicies,
    tokens: { verified: 0, invalid: 0, 'unknown-key': 0, 'no-keys': 0 },
    keySets: { loaded: 0, failed: 0 },
    upstreams: new Map([[DEFAULT_UPSTREAM, createUpstreamCounters()]]),
    errors: { request: 0, process: 0 },
    requestDuration: createDurationHistogram(REQUEST_BOUNDS_MS),
    storeDuration: createDurationHistogram(STORE_BOUNDS_MS),
    tables: new Map(),
    servers: () => [],
    addressLists: () => [],
    storeFailures: 0,
    resets: 0,
    breakerOpen: false,
    storeEvicted: 0,
    refusedConnections: { total: 0, client: 0, 'proxy-header': 0, tls: 0 },
    evictedConnections: { idle: 0, busy: 0 },
    connections: 0,
    upgrades: 0,
  }
}

function createUpstreamCounters(): UpstreamCounters {
  return {
    failures: { refused: 0, timeout: 0, reset: 0, protocol: 0, busy: 0, other: 0 },
    duration: createDurationHistogram(REQUEST_BOUNDS_MS),
    probes: undefined,
    state: 'unknown',
  }
}

type PolicyCounters = Pick<
  Counters,
  | 'decisions'
  | 'nearLimits'
  | 'delays'
  | 'bans'
  | 'unreadableCosts'
  | 'unreadReserves'
  | 'devices'
  | 'unreadKeys'
  | 'plans'
  | 'leases'
>

/** Adds those of policies that are not there yet, at 0. */
function* addPolicies(counters: PolicyCounters, policies: readonly Policy[]): Steps<void> {
  const { decisions, nearLimits, delays, bans, unreadableCosts, unreadReserves, devices, unreadKeys, plans } =
    counters
  for (const policy of policies) {
    const { name, ban, cost, device } = policy
    if (!decisions.has(name)) decisions.set(name, noDecisions())
    if (!nearLimits.has(name)) nearLimits.set(name, 0)
    if (maxDelayMs(policy) > 0 && !delays.has(name))
      delays.set(name, createDurationHistogram(DELAY_BOUNDS_MS))
    if (ban && !bans.has(name)) bans.set(name, 0)
    if (cost?.settle && !unreadableCosts.has(name)) unreadableCosts.set(name, noUnreadCosts())
    if (requestedUnits(policy) && !unreadReserves.has(name)) unreadReserves.set(name, noUnread())
    if (device && !devices.has(name)) devices.set(name, noDevices())
    if (policy.plans && !plans.has(name)) plans.set(name, {})
    if (policy.lease !== undefined && !counters.leases.has(name)) counters.leases.set(name, noLeases())
    if (hasBodyKey(policy) && !unreadKeys.has(name)) unreadKeys.set(name, noUnreadKeys())
    yield
  }
}

function* changeTable(counters: PolicyCounters, policies: readonly Policy[]): Steps<void> {
  const names = new Set(policies.map(({ name }) => name))
  const { decisions, nearLimits, delays, bans, unreadableCosts, unreadReserves, devices, unreadKeys, plans } =
    counters
  for (const counted of [
    decisions,
    nearLimits,
    delays,
    bans,
    unreadableCosts,
    unreadReserves,
    devices,
    unreadKeys,
    plans,
    counters.leases,
  ]) {
    for (const name of counted.keys()) {
      if (!names.has(name)) counted.delete(name)
      yield
    }
  }
  yield* addPolicies(counters, policies)
}

/**
 * The request path's way to write to the counters: additions to numbers, nothing else. They become Prometheus' metrics
 * only when somebody asks for those.
 */
export function createTelemetry(counters: Counters): Telemetry {
  const telemetry: Telemetry = {
    ofUpstream(name) {
      const upstream = counters.upstreams.get(name) ?? createUpstreamCounters()
      counters.upstreams.set(name, upstream)
      return { ...telemetry, ...createUpstreamTelemetry(upstream) }
    },
    ...createUpstreamTelemetry(counters.upstreams.get(DEFAULT_UPSTREAM) ?? createUpstreamCounters()),
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
    crowdsecPolled(outcome) {
      counters.crowdsecPolls[outcome]++
      if (outcome === 'done') counters.crowdsecPolledAtMs = Date.now()
    },
    denied(list) {
      counters.denials.set(list, (counters.denials.get(list) ?? 0) + 1)
    },
    decided(policy, outcome) {
      let decisions = counters.decisions.get(policy.name)
      if (!decisions) counters.decisions.set(policy.name, (decisions = noDecisions()))
      decisions[outcome]++
    },
    delayed({ name }, durationMs) {
      let delays = counters.delays.get(name)
      if (!delays) counters.delays.set(name, (delays = createDurationHistogram(DELAY_BOUNDS_MS)))
      delays.observe(durationMs)
    },
    nearLimit({ name }) {
      counters.nearLimits.set(name, (counters.nearLimits.get(name) ?? 0) + 1)
    },
    costUnreadable({ name }, reason) {
      let unread = counters.unreadableCosts.get(name)
      if (!unread) counters.unreadableCosts.set(name, (unread = noUnreadCosts()))
      unread[reason]++
    },
    reserveUnread({ name }, reason) {
      let unread = counters.unreadReserves.get(name)
      if (!unread) counters.unreadReserves.set(name, (unread = noUnread()))
      unread[reason]++
    },
    deviceRead({ name }, outcome) {
      devicesOf(counters, name)[outcome]++
    },
    deviceIssued({ name }) {
      devicesOf(counters, name).issued++
    },
    keyUnread({ name }, reason) {
      let unread = counters.unreadKeys.get(name)
      if (!unread) counters.unreadKeys.set(name, (unread = noUnreadKeys()))
      unread[reason]++
    },
    planRead({ name }, plan) {
      let counts = counters.plans.get(name)
      if (!counts) counters.plans.set(name, (counts = {}))
      counts[plan] = (counts[plan] ?? 0) + 1
    },
    leaseChanged({ name }, change, units) {
      let leases = counters.leases.get(name)
      if (!leases) counters.leases.set(name, (leases = noLeases()))
      leases[change] += units
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
    clientBanned({ name }) {
      counters.bans.set(name, (counters.bans.get(name) ?? 0) + 1)
    },
    breakerChanged(state) {
      counters.breakerOpen = state === 'open'
    },
    storeEvicted(keys) {
      counters.storeEvicted = keys
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
    *tableChanged(policies, routes) {
      yield* changeTable(counters, policies)
      const upstreams = new Set([DEFAULT_UPSTREAM, ...routes])
      for (const name of counters.upstreams.keys()) if (!upstreams.has(name)) counters.upstreams.delete(name)
    },
    observeTable(name, read) {
      counters.tables.set(name, read)
    },
    observeLists(read) {
      counters.addressLists = read
    },
    observeServers(read) {
      counters.servers = read
    },
  }
  return telemetry
}

function createUpstreamTelemetry(upstream: UpstreamCounters): UpstreamTelemetry {
  return {
    upstreamProbed(hasPassed) {
      upstream.probes ??= { passed: 0, failed: 0 }
      upstream.probes[hasPassed ? 'passed' : 'failed']++
    },
    upstreamAnswered(durationMs) {
      upstream.state = 'available'
      upstream.duration.observe(durationMs)
    },
    upstreamFailed(kind) {
      if (kind !== 'busy') upstream.state = 'unavailable'
      upstream.failures[kind]++
    },
  }
}

function devicesOf({ devices }: Pick<Counters, 'devices'>, policyName: string): DeviceCounts {
  let counts = devices.get(policyName)
  if (!counts) devices.set(policyName, (counts = noDevices()))
  return counts
}

function noDevices(): DeviceCounts {
  return { known: 0, unknown: 0, none: 0, issued: 0 }
}

function noDecisions(): Record<DecisionOutcome, number> {
  return { allowed: 0, refused: 0, shadow: 0, routed: 0, local: 0, open: 0, unavailable: 0 }
}

function noUnreadCosts(): Record<UnreadCost, number> {
  return { missing: 0, type: 0, encoding: 0, json: 0, cut: 0, status: 0 }
}

function noUnread(): Record<UnreadReserve, number> {
  return { missing: 0, type: 0, encoding: 0, size: 0, memory: 0, json: 0, number: 0, repeated: 0 }
}

function noLeases(): Record<LeaseChange, number> {
  return { taken: 0, used: 0, returned: 0 }
}

function noUnreadKeys(): Record<UnreadKey, number> {
  return { missing: 0, type: 0, charset: 0, encoding: 0, size: 0, memory: 0, syntax: 0, value: 0 }
}
