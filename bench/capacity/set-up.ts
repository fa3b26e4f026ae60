import { LEASE_MS } from '../../proxy/limits/store/leases/lease-store.ts'
import { CHARGES_IN_COMMAND, MAX_UNANSWERED } from '../../proxy/limits/store/redis/limiter.ts'
import type { MeasuredAlgorithm } from './costs.ts'

/** A set-up to simulate. All counters of a decision are on one node. */
export type SetUp = {
  /** Each is a process with a core and a connection to each node. */
  readonly gateways: number
  /** Whether all gateways take turns in one process, as those that `observe` measures do. */
  readonly areGatewaysInOneProcess?: boolean
  /** Redis masters. */
  readonly nodes: number
  readonly decisionsPerSecond: number
  /** Charges of a decision. */
  readonly rules: number
  readonly algorithm: MeasuredAlgorithm
  /** Between a gateway and a node. */
  readonly roundTripUs: number
  readonly seconds: number
  readonly seed: number
  /** When requests arrive, in microseconds; at random, as the figures above say, if undefined. */
  readonly arrivalsUs?: readonly number[]
  readonly tenants?: Tenants
  readonly failure?: Failure
  readonly upgrade?: Upgrade
}

/** Clients with a quota that is about to be used up. All others stay within theirs. */
export type Tenants = {
  readonly count: number
  /** The share of all decisions, from 0 to 1. */
  readonly share: number
  /** Requests in a window, for each tenant. */
  readonly quota: number
  readonly windowMs: number
  /** Whether gateways take units ahead: `lease: auto`. */
  readonly isLeased: boolean
}

/** A node's host stops answering, and later a replica of it is promoted. */
export type Failure = {
  readonly node: number
  readonly atSeconds: number
  readonly promotedAfterSeconds: number
  /** What the node had not replicated when it failed. */
  readonly replicationLagMs: number
}

/** Gateways are replaced, so many at a time. */
export type Upgrade = {
  readonly fromSeconds: number
  readonly atATime: number
  /** How long one does not serve. */
  readonly restartSeconds: number
}

/** What the simulated gateways do, as documented in docs/redis.md. */
export const gatewayRules = {
  maxUnanswered: MAX_UNANSWERED,
  maxChargesInCommand: CHARGES_IN_COMMAND,
  storeTimeoutUs: 100_000,
  failuresToOpen: 3,
  probeEveryUs: 250_000,
  addTimeoutUs: 1_000_000,
  leaseUs: LEASE_MS * 1000,
  /** Leases follow what a tenant used in this time. */
  usageUs: 100_000,
  /** A tenant that uses less in a tenth of a second is not worth a lease. */
  leaseFromUsed: 10,
  leasedTimesUsed: 1.5,
  leaseShareOfRemaining: 0.1,
  /** Units come back any time. */
  refusedUnderLeaseForUs: 250_000,
} as const
