import type { Steps } from '../../../shared/steps.ts'
import { maxDelayMs, requestedUnits, type Policy } from '../../policy.ts'
import { hasBodyKey } from '../../policy/partition.ts'
import type {
  DecisionOutcome,
  DeviceOutcome,
  LeaseChange,
  Telemetry,
  UnreadCost,
  UnreadKey,
  UnreadReserve,
} from '../telemetry.ts'
import { createDurationHistogram, type DurationHistogram } from './histogram.ts'

/** Counts by the name of a policy. Names come from the limits table, which bounds their number. */
export type PolicyCounters = {
  readonly decisions: Map<string, Record<DecisionOutcome, number>>
  /** Counted requests that used more than 80 % of their client's quota. */
  readonly nearLimits: Map<string, number>
  /** Waiting times, for policies under which requests wait for their turn. */
  readonly delays: Map<string, DurationHistogram>
  /** Bans, for policies with `ban`. */
  readonly bans: Map<string, number>
  /** Responses without a readable cost, for policies that read the cost of requests. */
  readonly unreadCosts: Map<string, Record<UnreadCost, number>>
  /** Requests that do not state how much to reserve, for policies that read this from the request. */
  readonly unreadReserves: Map<string, Record<UnreadReserve, number>>
  /** Outcomes for policies with `device`. */
  readonly devices: Map<string, Record<DeviceOutcome | 'issued', number>>
  /** Requests that count by address, because their body does not identify the client. */
  readonly unreadKeys: Map<string, Record<UnreadKey, number>>
  /** Requests for policies with plans, by plan: a plan of the policy, `none` or `unknown`. */
  readonly plans: Map<string, Record<string, number>>
  /** Units, for policies with `lease`. */
  readonly leases: Map<string, Record<LeaseChange, number>>
}

const DELAY_BOUNDS_MS = [10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000]

/** The counts of a policy before anything is counted. */
const uncounted = {
  decisions: () => ({ allowed: 0, refused: 0, shadow: 0, routed: 0, local: 0, open: 0, unavailable: 0 }),
  nearLimits: () => 0,
  delays: () => createDurationHistogram(DELAY_BOUNDS_MS),
  bans: () => 0,
  unreadCosts: () => ({ missing: 0, type: 0, encoding: 0, json: 0, cut: 0, status: 0 }),
  unreadReserves: () => ({
    missing: 0,
    type: 0,
    encoding: 0,
    size: 0,
    memory: 0,
    json: 0,
    number: 0,
    repeated: 0,
  }),
  devices: () => ({ known: 0, unknown: 0, none: 0, issued: 0 }),
  unreadKeys: () => ({
    missing: 0,
    type: 0,
    charset: 0,
    encoding: 0,
    size: 0,
    memory: 0,
    syntax: 0,
    value: 0,
  }),
  plans: (): Record<string, number> => ({}),
  leases: () => ({ taken: 0, used: 0, returned: 0 }),
}

/** Creates counters without policies. A policy is added by `addPolicies`, or when it is first counted. */
export function createPolicyCounters(): PolicyCounters {
  return {
    decisions: new Map(),
    nearLimits: new Map(),
    delays: new Map(),
    bans: new Map(),
    unreadCosts: new Map(),
    unreadReserves: new Map(),
    devices: new Map(),
    unreadKeys: new Map(),
    plans: new Map(),
    leases: new Map(),
  }
}

/** Adds counters, at 0, for policies that do not have any yet. */
export function* addPolicies(counters: PolicyCounters, policies: readonly Policy[]): Steps<void> {
  for (const policy of policies) {
    const { name } = policy
    const add = <Counts>(counted: Map<string, Counts>, none: () => Counts): void => {
      if (!counted.has(name)) begin(counted, name, none)
    }
    add(counters.decisions, uncounted.decisions)
    add(counters.nearLimits, uncounted.nearLimits)
    if (maxDelayMs(policy) > 0) add(counters.delays, uncounted.delays)
    if (policy.ban) add(counters.bans, uncounted.bans)
    if (policy.cost?.settle) add(counters.unreadCosts, uncounted.unreadCosts)
    if (requestedUnits(policy)) add(counters.unreadReserves, uncounted.unreadReserves)
    if (policy.device) add(counters.devices, uncounted.devices)
    if (hasBodyKey(policy)) add(counters.unreadKeys, uncounted.unreadKeys)
    if (policy.plans) add(counters.plans, uncounted.plans)
    if (policy.lease !== undefined) add(counters.leases, uncounted.leases)
    yield
  }
}

/** Removes policies that are no longer in the table, and adds new ones at 0. */
export function* changePolicies(counters: PolicyCounters, policies: readonly Policy[]): Steps<void> {
  const names = new Set(policies.map(({ name }) => name))
  for (const counted of Object.values(counters)) {
    for (const name of counted.keys()) {
      if (!names.has(name)) counted.delete(name)
      yield
    }
  }
  yield* addPolicies(counters, policies)
}

/** Begins to count under a name that has no counts yet. */
function begin<Counts>(counted: Map<string, Counts>, name: string, none: () => Counts): Counts {
  const counts = none()
  counted.set(name, counts)
  return counts
}

type PolicyTelemetry = Pick<
  Telemetry,
  | 'decided'
  | 'delayed'
  | 'nearLimit'
  | 'costUnread'
  | 'reserveUnread'
  | 'deviceRead'
  | 'deviceIssued'
  | 'keyUnread'
  | 'planRead'
  | 'leaseChanged'
  | 'clientBanned'
>

/** Creates the telemetry for events of policies, which change these counters. */
export function createPolicyTelemetry(counters: PolicyCounters): PolicyTelemetry {
  const { decisions, nearLimits, delays, bans, unreadCosts, unreadReserves } = counters
  const { devices, unreadKeys, plans, leases } = counters
  const devicesOf = (name: string) => devices.get(name) ?? begin(devices, name, uncounted.devices)
  return {
    decided({ name }, outcome) {
      const counts = decisions.get(name) ?? begin(decisions, name, uncounted.decisions)
      counts[outcome]++
    },
    delayed({ name }, durationMs) {
      const durations = delays.get(name) ?? begin(delays, name, uncounted.delays)
      durations.observe(durationMs)
    },
    nearLimit({ name }) {
      nearLimits.set(name, (nearLimits.get(name) ?? 0) + 1)
    },
    costUnread({ name }, reason) {
      const counts = unreadCosts.get(name) ?? begin(unreadCosts, name, uncounted.unreadCosts)
      counts[reason]++
    },
    reserveUnread({ name }, reason) {
      const counts = unreadReserves.get(name) ?? begin(unreadReserves, name, uncounted.unreadReserves)
      counts[reason]++
    },
    deviceRead({ name }, outcome) {
      devicesOf(name)[outcome]++
    },
    deviceIssued({ name }) {
      devicesOf(name).issued++
    },
    keyUnread({ name }, reason) {
      const counts = unreadKeys.get(name) ?? begin(unreadKeys, name, uncounted.unreadKeys)
      counts[reason]++
    },
    planRead({ name }, plan) {
      const counts = plans.get(name) ?? begin(plans, name, uncounted.plans)
      // A plan may be called `constructor`, which is a member of every object.
      const before = Object.hasOwn(counts, plan) ? counts[plan] : undefined
      counts[plan] = (before ?? 0) + 1
    },
    leaseChanged({ name }, change, units) {
      const counts = leases.get(name) ?? begin(leases, name, uncounted.leases)
      counts[change] += units
    },
    clientBanned({ name }) {
      bans.set(name, (bans.get(name) ?? 0) + 1)
    },
  }
}
