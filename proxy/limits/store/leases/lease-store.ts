import type { Charge } from '../../limiter.ts'

/** The shared counters, as far as units are taken ahead from them. */
export type LeaseStore = {
  /** Whether there is any use in asking. */
  isAnswering(charge: Charge): boolean
  /**
   * Counts units ahead, which the caller may let requests use until the window ends. Rejects where it is not known whether they were
   * counted: then they stay counted.
   *
   * @param charge its policy and its client; its units say nothing here
   * @param wanted called when the units are asked for, which may be at the end of this turn of the event loop: by then more of its requests
   *   have passed
   */
  take(charge: Charge, wanted: () => WantedUnits): Promise<Lease>
  /**
   * Gives back unused units, once, and returns before that is done. Units that the store does not get within `MAX_LEASE_AGE_MS` of the
   * lease stay counted, as do those of a client that was reset since.
   */
  giveBack(charge: Charge, lease: Lease, units: number): void
  /** Sends all pending requests for units, and all units to give back, because the connection is about to close. */
  flush(): void
}

/** `units`, but at most one part in `share` of the remaining quota (10: a tenth); none at all if that is below `min`. */
export type WantedUnits = { readonly units: number; readonly share: number; readonly min: number }

/** Units that were counted ahead. */
export type Lease = {
  /** 0 where there were too few. */
  readonly units: number
  /** Units of the quota that are left after these. */
  readonly remaining: number
  /** Milliseconds until the window ends. */
  readonly leftMs: number
  /** The ticket, as for a reservation. */
  readonly ticket: string
  /** When the units were taken, in microseconds of the store's clock. */
  readonly takenAtUs: string
}

/** Units are used for so long at most, and then given back. */
export const LEASE_MS = 500

/**
 * How long after a lease its units can be given back. A reset of the client within this time leaves them counted, so that none are
 * given back to a count that does not include them.
 */
export const MAX_LEASE_AGE_MS = 1000
