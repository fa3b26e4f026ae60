import type { Charge } from '../../limiter.ts'

/** The part of the shared counters that leases units ahead of requests. */
export type LeaseStore = {
  /** Whether the server of the charge's counter is expected to answer. */
  isAnswering(charge: Charge): boolean
  /**
   * Counts units ahead, which requests may use until the window ends. Rejects if it is not known whether the units were counted; if they
   * were, they stay counted.
   *
   * @param charge the policy and the client; its units are ignored
   * @param wanted called when the units are requested from the store, which may be at the end of this turn of the event loop, when more
   *   requests have passed
   */
  take(charge: Charge, wanted: () => WantedUnits): Promise<Lease>
  /**
   * Gives back unused units, once, and returns before the store has them. Units that the store does not get within `MAX_LEASE_AGE_MS` of
   * the lease stay counted, as do the units of a client that was reset since.
   */
  giveBack(charge: Charge, lease: Lease, units: number): void
  /** Sends all pending requests for units, and all units to give back, because the connection is about to close. */
  flush(): void
}

/** `units`, but at most one part in `share` of the remaining quota (10: a tenth). If that is less than `min`, no units are taken. */
export type WantedUnits = { readonly units: number; readonly share: number; readonly min: number }

/** Units that were counted ahead. */
export type Lease = {
  /** 0 if too few were left. */
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

/** The maximum time for which leased units are used. Unused units are then given back. */
export const LEASE_MS = 500

/**
 * How long after a lease its units can be given back. A reset of the client within this time leaves the units counted, so that they are
 * never given back to a count that does not include them.
 */
export const MAX_LEASE_AGE_MS = 1000
