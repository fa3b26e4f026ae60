import type { Condition } from './policy/conditions.ts'
import type { Plans } from './policy/plans.ts'
import type { PartitionPart } from './policy/partition.ts'

/** The limits of one rule, apart from the requests that it matches. */
export type Policy = {
  /** Unique; appears in response fields, metrics and Redis keys. */
  readonly name: string
  /** Units a client may use in one window; under `concurrency`, requests in flight. A request is one unit, unless `cost` says otherwise. */
  readonly quota: number
  /** The window in milliseconds. Under `concurrency` it is constant: the time for which a request counts without being renewed. */
  readonly windowMs: number
  /** A window of the calendar: from border to border, so that `windowMs` is only how long the longest usual one is. */
  readonly calendar?: CalendarWindow
  /** The name of an algorithm of `limits/algorithms/registry.ts`: how requests are counted. */
  readonly algorithm: string
  /** `shadow` counts and reports but never refuses. */
  readonly mode: 'enforce' | 'shadow'
  /** The handling of the rule's requests while the store does not answer. */
  readonly onStoreError: 'local' | 'open' | 'closed'
  /** The parts of the partition key, which identifies a client, in order. Never empty. */
  readonly partition: readonly PartitionPart[]
  /** If set, only requests whose response has one of these status codes count. Others are given back. */
  readonly countStatus?: readonly StatusRange[]
  /** Set if a request does not always cost one unit. */
  readonly cost?: Cost
  /** The ban of a client after a number of refusals in a window. */
  readonly ban?: BanPolicy
  /** Devices that have signed in to an account count apart from all others. */
  readonly device?: DevicePolicy
  /** For a token bucket with a `burst` of its own, the window of its average. */
  readonly averageWindowMs?: number
  /** Units are taken ahead from Redis and used without asking it: as many at a time, or as suits the traffic. */
  readonly lease?: 'auto' | number
  /** What happens to requests over the quota; without it they are refused. */
  readonly over?: OverPolicy
  /** False if no place to wait is left: a request that would have to wait is refused. */
  readonly mayWait?: false
  /** The other quotas, by the plan of a client. */
  readonly plans?: Plans
  /** The name of the plan, for the policy of its clients. */
  readonly plan?: string
  /** Index of the override that this policy is of, from 0; undefined for the rule itself. */
  readonly override?: number
  /** Whether an operator has set the quota, for a client, at run time. */
  readonly isSetAtRunTime?: true
  /** The label of the clients, for an override. */
  readonly label?: string
  /** For an override, the window of its rule if it differs: it names the counters that both share. */
  readonly sharedWindowMs?: number
  /** In a worker, the number of the change that a policy was part of while the worker ran. */
  readonly revision?: number
}

/** Windows that begin with an hour, a day, a week (on Monday) or a month of a time zone, by default UTC. */
export type CalendarWindow = { readonly unit: CalendarUnit; readonly timezone?: string }

export type CalendarUnit = 'hour' | 'day' | 'week' | 'month'

/**
 * - `after`: refusals in a window that lead to a ban
 * - `forMs`: of the first ban; each one in a row is twice as long as the one before, up to `maxMs`
 * - `scope`: whether the client is banned under the rule, or under all
 */
export type BanPolicy = {
  readonly after: number
  readonly forMs: number
  readonly maxMs: number
  readonly scope: 'rule' | 'all'
}

/**
 * - `cookie`: name of the cookie by which a device is known
 * - `forMs`: for how long it is known after it has signed in
 * - `status`: of the responses that say that somebody has signed in
 */
export type DevicePolicy = {
  readonly cookie: string
  readonly forMs: number
  readonly status: readonly StatusRange[]
}

/**
 * - `route`: the name of the route that requests over the quota are sent to
 * - `delayMs`: how long they may wait for their turn; `waiting`: how many may wait at once in a process
 */
export type OverPolicy = { readonly route: string } | { readonly delayMs: number; readonly waiting: number }

/** The route of requests over the quota; undefined if they are refused, or in shadow. */
export function overRouteOf({ mode, over }: Pick<Policy, 'mode' | 'over'>): string | undefined {
  return mode === 'enforce' && over && 'route' in over ? over.route : undefined
}

/** How long a request may wait for its turn, in milliseconds; 0 where none waits. */
export function maxDelayMs({ over, mayWait }: Pick<Policy, 'over' | 'mayWait'>): number {
  return over && 'delayMs' in over && mayWait !== false ? over.delayMs : 0
}

const undelayed = new WeakMap<Policy, Policy>()

/** The policy for a request for which there is no place to wait: the same object each time, and the same counters. */
export function withoutDelay(policy: Policy): Policy {
  const known = undelayed.get(policy)
  if (known) return known
  const made: Policy = { ...policy, mayWait: false }
  undelayed.set(policy, made)
  return made
}

/** Whether requests over the quota are refused: not in shadow, and not where they are sent to another route. */
export function refusesOver(policy: Pick<Policy, 'mode' | 'over'>): boolean {
  return policy.mode === 'enforce' && overRouteOf(policy) === undefined
}

/** Status codes from the first to the last, both included. */
export type StatusRange = { readonly first: number; readonly last: number }

export type Cost = {
  /** Units reserved when a request is allowed: a whole number from 1 to the quota, or the number in its body. */
  readonly reserve: number | RequestedUnits
  /** Where the real cost is read; undefined: `reserve` is the cost. */
  readonly settle?: CostSource
  /** Estimates the units from the bytes sent and received if `settle` finds nothing. Undefined: the reserved units count. */
  readonly otherwise?: 'estimate'
}

/** Where the JSON body of a request states units: the member names that lead to a number. */
export type RequestedUnits = {
  /** The paths, at least one; the largest number counts. */
  readonly paths: readonly (readonly string[])[]
  /** Units if the request states none: from 1 to the quota; undefined: the whole quota, as for a body that cannot be read. */
  readonly otherwise?: number
}

/**
 * - `header`: a header of the response, its name in lower case. `hide`: the client does not get it.
 * - `json`: a number in the response's JSON, by the names of the members that lead to it.
 */
export type SingleCostSource =
  | { readonly kind: 'header'; readonly name: string; readonly hide: boolean }
  | { readonly kind: 'json'; readonly path: readonly string[] }

/**
 * - `first`: the first of several that the response has
 * - `sum`: all together that the response has
 */
export type CostSource =
  SingleCostSource | { readonly kind: 'first' | 'sum'; readonly of: readonly CostSource[] }

/** Returns the single sources that a source names. */
export function singleSources(source: CostSource): SingleCostSource[] {
  return 'of' in source ? source.of.flatMap(singleSources) : [source]
}

/** Whether the body of the response is read for the cost, or measured. */
export function readsResponseBody({ cost }: Policy): boolean {
  if (!cost?.settle) return false
  return cost.otherwise === 'estimate' || singleSources(cost.settle).some(({ kind }) => kind === 'json')
}

/** Whether the response says what a request costs. */
export function settlesByResponse({ countStatus, cost }: Policy): boolean {
  return countStatus !== undefined || cost?.settle !== undefined
}

/** Units counted when a request is allowed, unless its charge states others. */
export function reservedUnits({ cost, quota }: Policy): number {
  const reserve = cost?.reserve ?? 1
  return typeof reserve === 'number' ? reserve : quota
}

/** Where a request states how many units to reserve, if it does. */
export function requestedUnits({ cost }: Policy): RequestedUnits | undefined {
  return typeof cost?.reserve === 'object' ? cost.reserve : undefined
}

/** Maximum units that a rule can allow, and that a request can cost. */
export const MAX_QUOTA = 1_000_000_000

/** A rule of the limits table: a policy and the requests that it matches. */
export type Rule = {
  readonly policy: Policy
  /** Hosts as they are compared; `*.` before a name is all names below it. Without it, every host; never empty. */
  readonly hosts?: readonly string[]
  readonly match: readonly RoutePattern[]
  readonly except: readonly RoutePattern[]
  /** Conditions that must all hold for it to apply to a request. */
  readonly when?: readonly RuleCondition[]
  /** Conditions that must not hold. */
  readonly unless?: readonly RuleCondition[]
  /** Clients that the rule does not apply to. */
  readonly allowList?: readonly ListEntry[]
  /** Policies for some clients; for a client that several name, the first counts. */
  readonly overrides?: readonly Override[]
  /** The response to the rule's refused requests, if it differs from that of all rules. */
  readonly refusal?: RefusalSource
}

export type RuleCondition = Condition<ListEntry>

export type Override = {
  readonly clients: readonly ListEntry[]
  /** The partition keys of the accounts that it names. */
  readonly accounts?: readonly string[]
  readonly policy: Policy
}

/** Returns the policies of the rules of a table, and of their overrides. */
export function policiesOf(rules: readonly Rule[]): Policy[] {
  return rules.flatMap(({ policy, overrides = [] }) => [
    policy,
    ...overrides.map((override) => override.policy),
  ])
}

/** The response to a refused request, as configured. Files are paths, headers name, value, name, value… */
export type RefusalSource = {
  readonly status: number
  readonly contentType: string
  readonly body: { readonly text: string } | { readonly file: string }
  readonly htmlFile?: string
  readonly headers: readonly string[]
}

/** A file with addresses: as written, which names it in metrics and logs, and its absolute path. */
export type ListFile = { readonly file: string; readonly location: string }

/**
 * An entry of a list of clients: addresses and CIDRs, those in files, or clients that send a header whose value has this SHA-256, in hex.
 * The name is lower-case.
 */
export type ListEntry =
  | { readonly kind: 'ip'; readonly ranges: readonly string[]; readonly files?: readonly ListFile[] }
  | { readonly kind: 'header'; readonly name: string; readonly sha256: string }

/**
 * `methods` is empty for `*`, else upper-case. `path` is the pattern as written: literal segments, `:name` for one
 * segment, a final `*` for the rest.
 */
export type RoutePattern = { readonly methods: readonly string[]; readonly path: string }

/** A pattern in the syntax of the limits table. */
export function writePattern({ methods, path }: RoutePattern): string {
  return `${methods.join(',') || '*'} ${path}`
}
