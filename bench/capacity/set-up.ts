import { LEASE_MS } from '../../proxy/limits/store/leases/lease-store.ts'
import { CHARGES_IN_COMMAND, MAX_UNANSWERED } from '../../proxy/limits/store/redis/limiter.ts'
import type { MeasuredAlgorithm } from './costs.ts'

/** A set-up to simulate. All counters of a decision are on one node. */
export type SetUp = {
  /** The number of gateways. Each is a process with its own core and a connection to each node. */
  readonly gateways: number
  /** Whether all gateways take turns in one process, as those measured by `observe` do. */
  readonly areGatewaysInOneProcess?: boolean
  /** Redis masters. */
  readonly nodes: number
  readonly decisionsPerSecond: number
  /** Charges per decision. */
  readonly rules: number
  readonly algorithm: MeasuredAlgorithm
  /** The round trip time between a gateway and a node. */
  readonly roundTripUs: number
  readonly seconds: number
  readonly seed: number
  /** The arrival times of requests in microseconds. If undefined, requests arrive at random, at the rate above. */
  readonly arrivalsUs?: readonly number[]
  readonly tenants?: Tenants
  readonly failure?: Failure
  readonly upgrade?: Upgrade
}

/** Clients whose quota is about to be used up. All other clients stay within their quotas. */
export type Tenants = {
  readonly count: number
  /** The tenants' share of all decisions, from 0 to 1. */
  readonly share: number
  /** The requests that each tenant may make in a window. */
  readonly quota: number
  readonly windowMs: number
  /** Whether gateways take units ahead, as with `lease: auto`. */
  readonly isLeased: boolean
}

/** The host of a node stops answering, and later a replica is promoted. */
export type Failure = {
  readonly node: number
  readonly atSeconds: number
  readonly promotedAfterSeconds: number
  /** The age of the writes that the node had not replicated when it failed. */
  readonly replicationLagMs: number
}

/** Gateways are replaced, `atATime` at once. */
export type Upgrade = {
  readonly fromSeconds: number
  readonly atATime: number
  /** How long a gateway is out of service. */
  readonly restartSeconds: number
}

/** The behavior of the simulated gateways, as documented in docs/redis.md. */
export const gatewayRules = {
  maxUnanswered: MAX_UNANSWERED,
  maxChargesInCommand: CHARGES_IN_COMMAND,
  storeTimeoutUs: 100_000,
  failuresToOpen: 3,
  probeEveryUs: 250_000,
  addTimeoutUs: 1_000_000,
  leaseUs: LEASE_MS * 1000,
  /** Leases depend on a tenant's use within this time. */
  usageUs: 100_000,
  /** A tenant with less use in a tenth of a second gets no lease. */
  leaseFromUsed: 10,
  leasedTimesUsed: 1.5,
  leaseShareOfRemaining: 0.1,
  /** A refusal is remembered only this long, because units may come back at any time. */
  refusedUnderLeaseForUs: 250_000,
} as const
