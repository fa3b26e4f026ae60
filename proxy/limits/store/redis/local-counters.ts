import type { Charge, Decision, Reservation } from '../../limiter.ts'

/** What the counters in Redis need from those of this process. */
export type LocalCounters = {
  /** Decides a request that Redis does not decide in time. `uncertain`: Redis may have counted it. */
  decideWithout(charges: readonly Charge[], uncertain: boolean): Decision
  /** Counts a request that Redis has allowed, and that is in flight now. */
  addInFlight(charge: Charge): void
  /** Removes such a request, which has ended. */
  removeInFlight(charge: Charge): void
  /**
   * Takes back a charge that was counted here while Redis was late, because Redis has counted it, too. Returns false if the charge may have
   * been added to Redis already.
   */
  takeBackPending(charge: Charge): boolean
  /** Settles a reservation that has cost more than was reserved, if Redis has certainly not charged the missing units. */
  settle(reservation: Reservation, costUnits: number): void
}
