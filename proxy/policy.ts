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
  /** A calendar window. Its length varies; `windowMs` is that of the longest usual one. */
  readonly calendar?: CalendarWindow
  /** The name of an algorithm of `limits/algorithms/registry.ts`: how requests are counted. */
  readonly algorithm: string
  /** `shadow` counts and reports but never refuses. */
  readonly mode: 'enforce' | 'shadow'
  /** How the rule's requests are handled while the store does not answer. */
  readonly onStoreError: 'local' | 'open' | 'closed'
  /** The parts of the partition key, which identifies a client, in order. Never empty. */
  readonly partition: readonly PartitionPart[]
  /** If set, only requests whose response has one of these status codes count. The units of other requests are refunded. */
  readonly countStatus?: readonly StatusRange[]
  /** Set if a request does not always cost one unit. */
  readonly cost?: Cost
  /** The ban of a client after a number of refusals in a window. */
  readonly ban?: BanPolicy
  /** Devices that have signed in to an account count apart from all others. */
  readonly device?: DevicePolicy
  /** For a token bucket with a `burst` of its own, the window of its average. */
  readonly averageWindowMs?: number
  /** Units are taken ahead from Redis and used without asking it: this number at a time, or a number that follows the traffic (`auto`). */
  readonly lease?: 'auto' | number
  /** How requests over the quota are handled; undefined: they are refused. */
  readonly over?: OverPolicy
  /** False if the waiting queue is full: a request that would have to wait is refused. */
  readonly mayWait?: false
  /** The quotas of clients with a plan. */
  readonly plans?: Plans
  /** The name of the plan whose clients this policy is for. */
  readonly plan?: string
  /** Index of the override that this policy belongs to, from 0; undefined for the rule itself. */
  readonly override?: number
  /** An operator has set this quota for a client at run time. */
  readonly isSetAtRunTime?: true
  /** The label of the clients, for an override. */
  readonly label?: string
  /** For an override whose window differs from its rule's: the rule's window, which names the counters that both share. */
  readonly sharedWindowMs?: number
  /** In a worker, the number of the configuration change that brought the policy while the worker ran. */
  readonly revision?: number
}

/** Windows that begin with an hour, a day, a week (on Monday) or a month in a time zone (default: UTC). */
export type CalendarWindow = { readonly unit: CalendarUnit; readonly timezone?: string }

export type CalendarUnit = 'hour' | 'day' | 'week' | 'month'

/**
 * - `after`: refusals in a window that lead to a ban
 * - `forMs`: the length of the first ban; each further ban in a row is twice as long as the one before, up to `maxMs`
 * - `scope`: whether the client is banned under this rule, or under all rules
 */
export type BanPolicy = {
  readonly after: number
  readonly forMs: number
  readonly maxMs: number
  readonly scope: 'rule' | 'all'
}

/**
 * - `cookie`: the name of the cookie that identifies a device
 * - `forMs`: how long a device stays known after it has signed in
 * - `status`: the status codes of responses that mean a successful sign-in
 */
export type DevicePolicy = {
  readonly cookie: string
  readonly forMs: number
  readonly status: readonly StatusRange[]
}

/**
 * - `route`: the name of the route that requests over the quota are sent to
 * - `delayMs`: how long a request may wait for its turn; `waiting`: how many may wait at once in a process
 */
export type OverPolicy = { readonly route: string } | { readonly delayMs: number; readonly waiting: number }

/** The route of requests over the quota; undefined if they are refused, or if the policy is in shadow mode. */
export function overRouteOf({ mode, over }: Pick<Policy, 'mode' | 'over'>): string | undefined {
  return mode === 'enforce' && over && 'route' in over ? over.route : undefined
}

/** How long a request may wait for its turn, in milliseconds; 0 if requests do not wait. */
export function maxDelayMs({ over, mayWait }: Pick<Policy, 'over' | 'mayWait'>): number {
  return over && 'delayMs' in over && mayWait !== false ? over.delayMs : 0
}

const undelayed = new WeakMap<Policy, Policy>()

/** The policy for a request that finds the waiting queue full. Returns the same object each time; it uses the same counters. */
export function withoutDelay(policy: Policy): Policy {
  const known = undelayed.get(policy)
  if (known) return known
  const made: Policy = { ...policy, mayWait: false }
  undelayed.set(policy, made)
  return made
}

/** Whether requests over the quota are refused: neither let through by shadow mode nor sent to another route. */
export function refusesOver(policy: Pick<Policy, 'mode' | 'over'>): boolean {
  return policy.mode === 'enforce' && overRouteOf(policy) === undefined
}

/** Status codes from the first to the last, both included. */
export type StatusRange = { readonly first: number; readonly last: number }

/** Whether one of the ranges has the status code. */
export function includesStatus(ranges: readonly StatusRange[], status: number): boolean {
  return ranges.some(({ first, last }) => first <= status && status <= last)
}

export type Cost = {
  /** Units reserved when a request is allowed: a whole number from 1 to the quota, or the number in its body. */
  readonly reserve: number | RequestedUnits
  /** The source of the real cost; undefined: `reserve` is the cost. */
  readonly settle?: CostSource
  /** Estimates the units from the bytes sent and received if `settle` finds nothing. Undefined: the reserved units count. */
  readonly otherwise?: 'estimate'
}

/** The places in a request's JSON body that state its units: the member names that lead to a number. */
export type RequestedUnits = {
  /** The paths, at least one; the largest number counts. */
  readonly paths: readonly (readonly string[])[]
  /** Units for a request that states no number, from 1 to the quota. Undefined: the whole quota, as for a body that cannot be read. */
  readonly otherwise?: number
}

/**
 * - `header`: a response header, its name in lower case. `hide`: it is not forwarded to the client.
 * - `json`: a number in the response's JSON, found by the member names that lead to it.
 */
export type SingleCostSource =
  | { readonly kind: 'header'; readonly name: string; readonly hide: boolean }
  | { readonly kind: 'json'; readonly path: readonly string[] }

/**
 * - `first`: the first source that is present in the response
 * - `sum`: the sum of all sources that are present in the response
 */
export type CostSource =
  | SingleCostSource
  | { readonly kind: 'first' | 'sum'; readonly of: readonly CostSource[] }

/** Returns the single sources that a source names. */
export function singleSources(source: CostSource): SingleCostSource[] {
  return 'of' in source ? source.of.flatMap(singleSources) : [source]
}

/** Whether the body of the response is read for the cost, or measured. */
export function readsResponseBody({ cost }: Policy): boolean {
  if (!cost?.settle) return false
  return cost.otherwise === 'estimate' || singleSources(cost.settle).some(({ kind }) => kind === 'json')
}

/** The headers with the cost that are not forwarded to the client. */
export function hiddenHeaders({ cost }: Policy): readonly string[] {
  if (!cost?.settle) return noHeaders
  return singleSources(cost.settle).flatMap((each) =>
    each.kind === 'header' && each.hide ? [each.name] : [],
  )
}

const noHeaders: readonly string[] = []

/** Whether the cost of a request depends on its response. */
export function settlesByResponse({ countStatus, cost }: Policy): boolean {
  return countStatus !== undefined || cost?.settle !== undefined
}

/** Units counted when a request is allowed, unless its charge states another number. */
export function reservedUnits({ cost, quota }: Policy): number {
  const reserve = cost?.reserve ?? 1
  return typeof reserve === 'number' ? reserve : quota
}

/** Where a request states the units to reserve; undefined if the policy reserves a fixed number. */
export function requestedUnits({ cost }: Policy): RequestedUnits | undefined {
  return typeof cost?.reserve === 'object' ? cost.reserve : undefined
}

/** Maximum units that a rule can allow, and that a request can cost. */
export const MAX_QUOTA = 1_000_000_000

/** A rule of the limits table: a policy and the requests that it matches. */
export type Rule = {
  readonly policy: Policy
  /** Hosts in comparable form; `*.` before a name stands for all names below it. Undefined: every host; never empty. */
  readonly hosts?: readonly string[]
  readonly match: readonly RoutePattern[]
  readonly except: readonly RoutePattern[]
  /** Conditions that must all hold for the rule to apply to a request. */
  readonly when?: readonly RuleCondition[]
  /** The rule does not apply if one of these conditions holds. */
  readonly unless?: readonly RuleCondition[]
  /** Clients that the rule does not apply to. */
  readonly allowList?: readonly ListEntry[]
  /** Policies for some clients. If several name a client, the first one counts. */
  readonly overrides?: readonly Override[]
  /** The response to the rule's refused requests, if it differs from the response for all rules. */
  readonly refusal?: RefusalSource
}

export type RuleCondition = Condition<ListEntry>

export type Override = {
  readonly clients: readonly ListEntry[]
  /** The partition keys of the accounts that the override names. */
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

/** The response to a refused request, as configured. Files are paths; headers are name, value, name, value… */
export type RefusalSource = {
  readonly status: number
  readonly contentType: string
  readonly body: { readonly text: string } | { readonly file: string }
  readonly htmlFile?: string
  readonly headers: readonly string[]
}

/** A file with addresses. `file` is the path as written, which names it in metrics and logs; `location` is the absolute path. */
export type ListFile = { readonly file: string; readonly location: string }

/**
 * An entry of a client list: addresses and CIDRs, written or in files, or a header whose value has this SHA-256, in hex. The header's name
 * is in lower case.
 */
export type ListEntry =
  | { readonly kind: 'ip'; readonly ranges: readonly string[]; readonly files?: readonly ListFile[] }
  | { readonly kind: 'header'; readonly name: string; readonly sha256: string }

/**
 * `methods` is empty for `*`; otherwise in upper case. `path` is the pattern as written: literal segments, `:name` for one segment, a final
 * `*` for the rest.
 */
export type RoutePattern = { readonly methods: readonly string[]; readonly path: string }

/** A pattern in the syntax of the limits table. */
export function writePattern({ methods, path }: RoutePattern): string {
  return `${methods.join(',') || '*'} ${path}`
}
