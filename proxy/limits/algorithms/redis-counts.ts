import type { Policy } from '../../policy.ts'
import type { PendingSlot } from './slots/slot-pool.ts'

/** How an algorithm counts in Redis. */
export type RedisCounts = {
  /**
   * The end of a counter's key, after the name of its policy. Counters that this version cannot read must have another key;
   * counters of versions that run at the same time must have the same.
   */
  keyEnd(policy: Policy): string
  /** The commands that its Lua calls. */
  readonly commands: {
    readonly always: readonly RedisCommand[]
    /** Commands for policies whose charges are reserved. */
    readonly reserving?: readonly RedisCommand[]
    /** Further commands in a cluster. */
    readonly cluster?: readonly RedisCommand[]
  }
  readonly lua: AlgorithmLua
  /** Text for the `policy.window` of its Lua, after the length of the window and a space. Called for each command. */
  windowText?(policy: Policy, epochMs: number): string
  /**
   * The state of a counter before so many units were counted, by the reply of that; the times are milliseconds. Without it, so many more are
   * left, until the same time.
   */
  stateBefore?(policy: Policy, units: number, after: CountedState): CountedState
  /**
   * The ticket of a charge that was counted without one, since nothing is reserved under its policy.
   *
   * @param leftMs until more was left, as the decision said
   * @param countedAt Redis's clock in microseconds, where the decision read it
   */
  ticketOf(leftMs: number, countedAt: unknown): string
  /** The arguments for `add` of its Lua, for requests admitted without Redis. Instants are by the clock that `nowMs` is of. */
  addedValues(pending: Pick<PendingSlot, 'endsAtMs' | 'counted'>, nowMs: number): readonly string[]
}

/** How much is left of a quota, and the milliseconds until more is. */
export type CountedState = { readonly remaining: number; readonly resetMs: number }

/** A command, and arguments after the key to test it with: on a key that holds the string `0` it must succeed, or fail with WRONGTYPE. */
export type RedisCommand = readonly [name: string, ...tried: string[]]

/**
 * Lua that defines functions of the table `algorithm`. Each part becomes a block of the script that needs it, after `common`.
 *
 * `key` is the counter's key. `policy` has the fields `quota`, `windowMs`, `windowUs`, `window` (its length as text, and `windowText`),
 * `enforces`, `delayUs` (how long a request may wait) and `reserves` (whether charges come with units and get a ticket). `units` is a
 * number as text or, if requests in flight are counted, the request's name; if nothing is reserved it is the number 1.
 *
 * The Lua calls Redis by `call(command, …)`, which returns an error as a table with `err`, or by `must(command, …)` where nothing
 * but a missing right can make it fail: that is in `denied` then. `readClockUs()` is Redis's clock in microseconds, the same
 * throughout a script; nil if it may not be read, and `denied` says so. Every key that is written must get an expiry.
 */
export type AlgorithmLua = {
  /** Local functions that the parts share. */
  readonly common?: string
  /**
   * `count(key, policy, units)` counts a charge if the quota has room. It returns the remaining quota, or, if it does not fit, -1 minus
   * the remaining quota; the microseconds until more is left; the ticket, if something was counted that is reserved; and the state that
   * `undo` needs.
   * If it cannot count, nothing must be counted: it returns nil and an error text.
   *
   * `undo(key, policy, units, remaining, state)` takes back the units counted just now. It returns the remaining quota, and the
   * microseconds until more is left, or nil if these are the same.
   */
  readonly decide: string
  /**
   * `settle(key, policy, units, ticket)` gives back units that were reserved, to where the ticket says and to nowhere else; or,
   * below 0, adds them. The ticket may be that of `ticketOf`. Errors are ignored.
   */
  readonly settle: string
  /** `read(key, policy)` returns the used units, and the microseconds until more is left; or an error text. Writes nothing new. */
  readonly read: string
  /** `add(key, policy, values)` adds requests admitted elsewhere, whatever the quota. `values` are those of `addedValues`. */
  readonly add: string
  /** `renew(key, policy, ticket)` says that a request is still in flight. Only where these are counted. */
  readonly renew?: string
}
