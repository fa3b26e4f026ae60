import type { Policy } from '../policy.ts'
import type { DeviceOfCharge } from './keys/devices/device-of-charge.ts'

/** One request of one client that one rule is asked to allow and count. */
export type Charge = {
  readonly policy: Policy
  /** Identifies the client under the policy. Its parts are unambiguously separated, and secrets are hashed. */
  readonly partitionKey: string
  /** Units to reserve, from 1 to the quota; as many as `reservedUnits` says of the policy where it is left out. */
  readonly units?: number
  /** The device, under a policy with `device`. */
  readonly device?: DeviceOfCharge
  /** The client is one that only few backends take the request for. */
  readonly isExtra?: boolean
}

/** The remaining quota of a client under one policy, after the decision. */
export type PolicyState = {
  readonly policy: Policy
  /** The request was over this policy's quota: it is refused, would have been (`shadow`), or goes to another route. */
  readonly exceeded: boolean
  /** Units left in the current window, 0 to quota. */
  readonly remaining: number
  /**
   * Milliseconds until more is left, perhaps with a fraction: until a fixed window ends, or until the oldest request
   * that uses up a sliding one leaves it. The whole window where nothing is counted.
   */
  readonly resetMs: number
  /** The policy does not have the plan that was set for the client. */
  readonly isPlanUnknown?: true
  /** The reservation to settle; only under policies for which `isReserved` holds, and if something was reserved. */
  readonly reservation?: Reservation
}

/** The units reserved for a request under a policy until its cost is known. */
export type Reservation = {
  readonly charge: Charge
  readonly units: number
  /** Counted in this process while the store was away. */
  readonly isLocal: boolean
  /** Identifies where the charge was counted; only the counters that made it can read it. */
  readonly ticket: Ticket
}

/**
 * Identifies the window, time or request in flight that a reservation was counted in, to tell it from others of the same client: a number
 * in this process's counters, a text in others.
 */
export type Ticket = number | string

/**
 * The decision for all charges of one request. `states` are in the order of the charges. While the store is
 * unavailable, policies that allow requests without counting have no state.
 *
 * - `allowed`: every charge was counted, except those of an exceeded policy that refuses nothing (`refusesOver`).
 *   `withoutStore`: they were counted in this process only, and those without a state not at all. `turn`: the request has
 *   to wait for it.
 * - `refused`: `refusedBy` is the first enforced policy that is over its limit. Nothing was counted.
 * - `unavailable`: the store did not answer, and a policy of the request has `onStoreError: closed`. `uncertain`: the
 *   store may have counted the request; otherwise it has not.
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
  /** Gives up the turn of a client that has disconnected to the next one. */
  leave(): void
}

/** Decides a whole request: atomically, unless its counters are on several nodes of a cluster. */
export type Limiter = {
  /**
   * Decides and counts. Never throws and never rejects: a failure is the value `unavailable`. Returns the decision
   * itself, and no promise, if it is known in this process.
   *
   * @param charges of the request's rules, in the table's order; never empty. Mostly one for each rule; a rule that counts
   *   the request for several clients has one for each of them, side by side
   */
  decide(charges: readonly Charge[]): Decision | Promise<Decision>
  /**
   * Settles a reservation, once: units reserved beyond the real cost are refunded to the window that they were taken from, if that has
   * not ended; missing units are charged to the running window. It returns before that is done. If the store does not get it, the
   * reservation stays counted until its window ends, or its gateway is considered dead.
   *
   * @param costUnits what the request has cost, a whole number from 0; of no meaning under `concurrency`
   */
  settle(reservation: Reservation, costUnits: number): void
}

/**
 * Returns the charge of each state. They are in the same order, but some charges have no state: those of a policy that allowed the
 * request without counting it.
 *
 * @returns as many as there are states
 */
export function chargesOfStates(
  charges: readonly Charge[],
  states: readonly PolicyState[],
): readonly Charge[] {
  if (states.length === charges.length) return charges
  const counted = new Set(states.map(({ policy }) => policy))
  return charges.filter(({ policy }) => counted.has(policy))
}
