import type { CounterReading } from '../../counter-admin.ts'
import type { Charge, PolicyState, Reservation } from '../../limiter.ts'

/** What counts one kind of limit in the memory of this process. Times are milliseconds of one monotonic clock. */
export type Counts = {
  /** Whether so many units more would be over the quota. Counts nothing. */
  exceeds(charge: Charge, units: number, nowMs: number): boolean
  /**
   * Counts the charge where `counts` says so and the quota has room.
   *
   * @param unsaved whether what is counted has still to be added to the shared counters
   */
  charge(charge: Charge, units: number, nowMs: number, counts: boolean, unsaved: boolean): PolicyState
  /** Gives back units of a reservation, or, below 0, adds them. */
  giveBack(reservation: Reservation, units: number, nowMs: number): void
  read(charge: Charge, nowMs: number): CounterReading
}
