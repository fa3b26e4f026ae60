import type { TableUse } from '../../telemetry/telemetry.ts'
import type { Charge, PolicyState, Reservation } from '../limiter.ts'
import type { PendingSlot } from './slots/slot-pool.ts'

/** The value of a counter, undefined without one. `used`: units. `resetMs`: milliseconds until more is left. */
export type CounterReading = { readonly used: number; readonly resetMs: number } | undefined

/**
 * The counts of an algorithm in the memory of this process. Times are milliseconds of one monotonic clock, whose sums and differences
 * with window lengths are exact. `table` identifies the policy of the charge: policies that are counted together, such as a rule's and
 * those of its overrides, share one.
 */
export type MemoryCounts = {
  /** Whether so many units more would be over the quota. Counts nothing. */
  exceeds(table: number, charge: Charge, units: number, nowMs: number): boolean
  /**
   * Counts the charge if `counts` is set and the quota has room. The state has a reservation if something was counted that is to
   * be settled, or is pending sync; only `giveBack` reads its ticket.
   *
   * @param isLocal whether the counted units are pending sync with the shared counters
   */
  charge(
    table: number,
    charge: Charge,
    units: number,
    nowMs: number,
    counts: boolean,
    isLocal: boolean,
  ): PolicyState
  /**
   * Gives back units of a reservation, and never more than it took; or, below 0, adds them, over the quota too. Of a local
   * reservation only units pending sync are refunded.
   */
  giveBack(table: number, reservation: Reservation, units: number, nowMs: number): void
  /** Counts nothing. Undefined for a client of whom nothing counts. */
  read(table: number, charge: Charge, nowMs: number): CounterReading
  /** The slots of its clients. */
  readonly slots: ClientSlots
  /**
   * Hands out, each once, at most `limit` numbers that are pending sync and have not ended.
   *
   * @param isAsked whether those of this shard are handed out; without it all are
   */
  takePending(limit: number, nowMs: number, isAsked?: (shard: number) => boolean): readonly PendingSlot[]
  /** Takes one request of a client out of the pending sync. Returns false if it has none. Not asked of policies that take units. */
  takeBackPending(table: number, charge: Charge, nowMs: number): boolean
  /** Counts a charge that other counters have let through, whatever the quota. Only where requests in flight are counted. */
  add?(table: number, charge: Charge): void
  /** How full each of the algorithm's `memoryTables` is. */
  readUse(): Readonly<Record<string, TableUse>>
}

/** The memory limiter's interface to the clients of an algorithm; `SlotPool` is the usual one. */
export type ClientSlots = {
  /** Clients with counts pending sync. */
  readonly pendingSize: number
  /** Calls back for each of these with its shard. */
  pendingShards(): Iterable<number>
  /** Frees a few clients that have ended. Called with every decision. */
  reclaimInPassing(nowMs: number): void
  forget(table: number, key: string): boolean
  /** Frees these tables but for clients that must stay. Returns the tables that have some. */
  dropTables(tables: ReadonlySet<number>): ReadonlySet<number>
}

/**
 * @param seed any integer that clients cannot know
 * @param wallNow the time of day, in milliseconds since 1970. Default: the machine's
 * @param shardOf which part of the shared counters has those of a partition key, from 0 to 65,535. Without it there is one part
 */
export type MemoryOptions = {
  readonly maxKeys: number
  readonly seed: number
  readonly wallNow?: (() => number) | undefined
  readonly shardOf?: ((partitionKey: string) => number) | undefined
}
