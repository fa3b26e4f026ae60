import type { TableUse } from '../../telemetry/telemetry.ts'
import type { Charge, PolicyState, Reservation } from '../limiter.ts'
import type { PendingSlot, SlotOptions } from './slots/slot-pool.ts'

/** The value of a counter; undefined if there is no counter. `used`: units. `resetMs`: milliseconds until more units are available. */
export type CounterReading = { readonly used: number; readonly resetMs: number } | undefined

/**
 * The counts of an algorithm in the memory of this process. Times are milliseconds of one monotonic clock, whose sums and differences
 * with window lengths are exact. `table` identifies the policy of the charge: policies that are counted together, such as a rule's and
 * those of its overrides, share a table.
 */
export type MemoryCounts = {
  /** Whether `units` more would exceed the quota. Counts nothing. */
  exceeds(table: number, charge: Charge, units: number, nowMs: number): boolean
  /**
   * Counts the charge if the quota has room. The state has a reservation if units were counted that must be settled later or are
   * pending sync. Only `giveBack` reads its ticket.
   *
   * @param isLocal whether the counted units are pending sync with the shared counters
   */
  charge(table: number, charge: Charge, units: number, nowMs: number, isLocal: boolean): PolicyState
  /** Returns the state of a request that another policy may have refused. Counts nothing. */
  peek(table: number, charge: Charge, units: number, nowMs: number): PolicyState
  /**
   * Gives back units of a reservation, but never more than it took. Negative units are added, even beyond the quota. For a local
   * reservation, only units pending sync are refunded.
   */
  giveBack(table: number, reservation: Reservation, units: number, nowMs: number): void
  /** Counts nothing. Returns undefined if nothing counts for the client. */
  read(table: number, charge: Charge, nowMs: number): CounterReading
  /** The slots of the algorithm's clients. */
  readonly slots: ClientSlots
  /**
   * Hands out at most `limit` numbers that are pending sync and have not ended, each of them once.
   *
   * @param isAsked whether the numbers of a shard are handed out; without it, the numbers of all shards are
   */
  takePending(limit: number, nowMs: number, isAsked?: (shard: number) => boolean): readonly PendingSlot[]
  /** Removes one request of a client from the pending sync. Returns false if none is pending. Not called for policies that take units. */
  takeBackPending(table: number, charge: Charge, nowMs: number): boolean
  /** Counts a charge that other counters have allowed, regardless of the quota. Only for algorithms that count requests in flight. */
  add?(table: number, charge: Charge): void
  /** How full each of the algorithm's `memoryTables` is. */
  readUse(): Readonly<Record<string, TableUse>>
}

/** The memory limiter's interface to the clients of an algorithm; `SlotPool` is the usual one. */
export type ClientSlots = {
  /** The number of clients with counts pending sync. */
  readonly pendingSize: number
  /** Returns the shards of these clients, without duplicates. */
  pendingShards(): Iterable<number>
  /** Frees a few clients that have ended. Called with every decision. */
  reclaimInPassing(nowMs: number): void
  forget(table: number, key: string): boolean
  /** Frees these tables except for clients that must stay. Returns the tables that still have clients. */
  dropTables(tables: ReadonlySet<number>): ReadonlySet<number>
}

export type MemoryOptions = SlotOptions & {
  /** The time of day, in milliseconds since 1970. Default: the machine's clock. */
  readonly wallNow?: (() => number) | undefined
}
