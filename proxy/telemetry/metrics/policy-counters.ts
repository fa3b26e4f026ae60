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

/** Counts by the name of a policy, which comes from the limits table: never longer than that. */
export type PolicyCounters = {
  readonly decisions: Map<string, Record<DecisionOutcome, number>>
  /** Counted requests that used more than 80 % of their client's quota. */
  readonly nearLimits: Map<string, number>
  /** By policy under which requests wait for their turn. */
  readonly delays: Map<string, DurationHistogram>
  /** By policy that bans. */
  readonly bans: Map<string, number>
  /** By policy that reads the cost of requests. */
  readonly unreadableCosts: Map<string, Record<UnreadCost, number>>
  /** By policy that reads from the request how much to reserve. */
  readonly unreadReserves: Map<string, Record<UnreadReserve, number>>
  /** By policy with `device`. */
  readonly devices: Map<string, Record<DeviceOutcome | 'issued', number>>
  /** Requests that count by address, as their body does not say for whom. */
  readonly unreadKeys: Map<string, Record<UnreadKey, number>>
  /** By policy with plans, and by plan: its own, `none` and `unknown`. */
  readonly plans: Map<string, Record<string, number>>
  /** Units by policy with `lease`. */
  readonly leases: Map<string, Record<LeaseChange, number>>
}

const DELAY_BOUNDS_MS = [10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000]

/** The counts of a policy before anything is counted. */
const uncounted = {
  decisions: () => ({ allowed: 0, refused: 0, shadow: 0, routed: 0, local: 0, open: 0, unavailable: 0 }),
  nearLimits: () => 0,
  delays: () => createDurationHistogram(DELAY_BOUNDS_MS),
  bans: () => 0,
  unreadableCosts: () => ({ missing: 0, type: 0, encoding: 0, json: 0, cut: 0, status: 0 }),
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

/** Counters of no policy. A policy is added by `addPolicies`, or when it is first counted. */
export function createPolicyCounters(): PolicyCounters {
  return {
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
}

/** Adds counters of policies that have none yet, at 0. */
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
    if (policy.cost?.settle) add(counters.unreadableCosts, uncounted.unreadableCosts)
    if (requestedUnits(policy)) add(counters.unreadReserves, uncounted.unreadReserves)
    if (policy.device) add(counters.devices, uncounted.devices)
    if (hasBodyKey(policy)) add(counters.unreadKeys, uncounted.unreadKeys)
    if (policy.plans) add(counters.plans, uncounted.plans)
    if (policy.lease !== undefined) add(counters.leases, uncounted.leases)
    yield
  }
}

/** Forgets the policies that are not in the table any more, and adds the new ones at 0. */
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
  | 'costUnreadable'
  | 'reserveUnread'
  | 'deviceRead'
  | 'deviceIssued'
  | 'keyUnread'
  | 'planRead'
  | 'leaseChanged'
  | 'clientBanned'
>

/** The events of policies that change these counters. */
export function createPolicyTelemetry(counters: PolicyCounters): PolicyTelemetry {
  const { decisions, nearLimits, delays, bans, unreadableCosts, unreadReserves } = counters
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
    costUnreadable({ name }, reason) {
      const counts = unreadableCosts.get(name) ?? begin(unreadableCosts, name, uncounted.unreadableCosts)
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
      // A plan may be called `constructor`, which every object has.
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
