import { requestedUnits, reservedUnits, type Policy } from '../policy.ts'
import type { DeviceOfCharge } from './keys/devices/device-of-charge.ts'

/** One request of one client that one rule is asked to allow and count. */
export type Charge = {
  readonly policy: Policy
  /** Identifies the client under the policy. Its parts are unambiguously separated, and secrets are hashed. */
  readonly partitionKey: string
  /** Units to reserve, from 1. Defaults to `reservedUnits` of the policy. `unitsOf` returns the units that are taken. */
  readonly units?: number
  /** The device, under a policy with `device`. */
  readonly device?: DeviceOfCharge
  /** The client is one that only few backends attribute the request to. */
  readonly isExtra?: boolean
  /** The request is a batch, so the status of its response does not say how the guesses in it ended. */
  readonly isBatch?: boolean
}

/** The remaining quota of a client under one policy, after the decision. */
export type PolicyState = {
  readonly policy: Policy
  /** The request was over this policy's quota: it is refused, would have been (`shadow`), or goes to another route. */
  readonly exceeded: boolean
  /** Units left in the current window, 0 to quota. */
  readonly remaining: number
  /**
   * Milliseconds until quota is freed, possibly fractional: until a fixed window ends, or until the oldest counted request leaves a sliding
   * window. The full window if nothing is counted.
   */
  readonly resetMs: number
  /** The policy does not have the plan that was set for the client. */
  readonly isPlanUnknown?: true
  /** The reservation to settle. Set only if the policy satisfies `isReserved` and units were reserved. */
  readonly reservation?: Reservation
}

/** The units reserved for a request under a policy until its cost is known. */
export type Reservation = {
  readonly charge: Charge
  readonly units: number
  /** Counted in this process while the store was unavailable. */
  readonly isLocal: boolean
  /** Identifies where the charge was counted; only the counters that made it can read it. */
  readonly ticket: Ticket
}

/**
 * Identifies the window, time or request in flight that a reservation was counted in, among those of the same client. A number in this
 * process's counters, a string in others.
 */
export type Ticket = number | string

/**
 * The decision for all charges of one request. `states` are in the order of the charges. While the store is
 * unavailable, policies that allow requests without counting have no state.
 *
 * - `allowed`: every charge was counted, except those of an exceeded policy that refuses nothing (`refusesOver`). `withoutStore`: they were
 *   counted in this process only, and charges without a state were not counted at all. `turn`: the request has to wait for its turn.
 * - `refused`: `refusedBy` is the first enforced policy that is over its limit. Nothing was counted.
 * - `unavailable`: the store did not answer, and a policy of the request has `onStoreError: closed`. `uncertain`: the store may have
 *   counted the request; otherwise it did not.
 */
export type Decision =
  | {
      readonly outcome: 'allowed'
      readonly states: readonly PolicyState[]
      readonly withoutStore?: true
      readonly turn?: Turn
    }
  | { readonly outcome: 'refused'; readonly refusedBy: Policy; readonly states: readonly PolicyState[] }
  | { readonly outcome: 'unavailable'; readonly uncertain: boolean }

/** The wait of a request that policies delay (`over: { delay }`). It ends with the callback of `wait`, or with `leave`. */
export type Turn = {
  /** Calls back when its turn has come, with the milliseconds waited. */
  wait(onTurn: (waitedMs: number) => void): void
  /** Passes the turn of a disconnected client to the next one in the queue. */
  leave(): void
}

/** Decides all charges of a request together: atomically, unless the counters are on several nodes of a cluster. */
export type Limiter = {
  /**
   * Decides and counts. Never throws and never rejects: a failure is the outcome `unavailable`. Returns a promise only if counters outside
   * this process are asked, even if they do not answer.
   *
   * @param charges in the table's order of their rules; never empty. Usually one per rule; a rule that counts the request for several
   *   clients has one charge for each, side by side
   */
  decide(charges: readonly Charge[]): Decision | Promise<Decision>
  /**
   * Settles a reservation, once. Surplus units are refunded to the window that they were taken from, unless it has ended; missing units are
   * charged to the current window. Returns before this is done. If the store never receives the settlement, the reservation stays counted
   * until its window ends or its gateway is considered dead.
   *
   * @param costUnits the cost of the request, a whole number from 0; ignored under `concurrency`
   */
  settle(reservation: Reservation, costUnits: number): void
}

/**
 * Returns the units that a request takes. Units that the request itself states are at most the quota: the client's plan, which the store
 * reads, may allow less than the request states.
 *
 * @param charge with the policy of the client's plan
 */
export function unitsOf({ policy, units }: Charge): number {
  if (units === undefined) return reservedUnits(policy)
  return requestedUnits(policy) ? Math.min(units, policy.quota) : units
}

/**
 * Returns the charge of each state, in the same order. Charges of a policy that allowed the request without counting it have no state.
 *
 * @returns one charge per state
 */
export function chargesOfStates(
  charges: readonly Charge[],
  states: readonly PolicyState[],
): readonly Charge[] {
  if (states.length === charges.length) return charges
  const counted = new Set(states.map(({ policy }) => policy))
  return charges.filter(({ policy }) => counted.has(policy))
}
