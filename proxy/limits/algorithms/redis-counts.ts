import type { Policy } from '../../policy.ts'
import type { PendingSlot } from './slots/slot-pool.ts'

/** How an algorithm counts in Redis. */
export type RedisCounts = {
  /**
   * Returns the end of a counter's key, after the name of its policy. Counters that this version cannot read must have other
   * keys. Versions that run at the same time must use the same keys.
   */
  keyEnd(policy: Policy): string
  /** The commands that the algorithm's Lua calls. */
  readonly commands: {
    readonly always: readonly RedisCommand[]
    /** Commands for policies whose charges are reserved. */
    readonly reserving?: readonly RedisCommand[]
    /** Further commands in a cluster. */
    readonly cluster?: readonly RedisCommand[]
  }
  readonly lua: AlgorithmLua
  /** Returns text for `policy.window` in the Lua, where it follows the length of the window and a space. Called for each command. */
  windowText?(policy: Policy, epochMs: number): string
  /**
   * Makes the ticket of a charge that was counted without one, because nothing is reserved under its policy.
   *
   * @param leftMs milliseconds until more units were available, from the decision
   * @param countedAt Redis's clock in microseconds, if the decision read it
   */
  ticketOf(leftMs: number, countedAt: unknown): string
  /** Returns the arguments for `add` of the Lua, for requests admitted without Redis. Instants are on the same clock as `nowMs`. */
  addedValues(
    pending: Pick<PendingSlot, 'endsAtMs' | 'counted'>,
    nowMs: number,
    policy: Policy,
  ): readonly string[]
}

/** A command, and arguments after the key to test it with. On a key that holds the string `0`, it must succeed or fail with WRONGTYPE. */
export type RedisCommand = readonly [name: string, ...tried: string[]]

/**
 * Lua that defines functions of the table `algorithm`. Each part becomes a block of the script that needs it, after `common`.
 *
 * `key` is the counter's key. `policy` has the fields `quota`, `windowMs`, `windowUs`, `window` (its length as text, and `windowText`),
 * `enforces`, `delayUs` (how long a request may wait) and `reserves` (whether charges come with units and get a ticket). `units` is a
 * number as text or, if requests in flight are counted, the request's name; if nothing is reserved it is the number 1.
 *
 * The Lua calls Redis with `call(command, …)`, which returns an error as a table with `err`, or with `must(command, …)` if only a
 * missing right can make the command fail; `denied` is then the error. `readClockUs()` returns Redis's clock in microseconds, which
 * does not change during a script, or nil and sets `denied` if the clock may not be read. Every key that is written must get an expiry.
 */
export type AlgorithmLua = {
  /** Local functions that the parts share. */
  readonly common?: string
  /**
   * `count(key, policy, units)` counts a charge if the quota has room. It returns the remaining quota or, if the charge does not fit, -1
   * minus the remaining quota; the microseconds until more units are available; the ticket, if a reservation was counted; and the state
   * that `undo` needs. If it cannot count, it must leave nothing counted, and return nil and an error text.
   *
   * `undo(key, policy, units, remaining, state)` takes back the units counted just now. It returns the remaining quota, and the
   * microseconds until more units are available, or nil if this time has not changed.
   */
  readonly decide: string
  /**
   * `settle(key, policy, units, ticket)` gives back reserved units to the place that the ticket identifies, and nowhere else.
   * Negative units are added. The ticket may come from `ticketOf`. Errors are ignored, except by algorithms that count requests in flight:
   * they return the error text for which a request has not ended.
   */
  readonly settle: string
  /** `read(key, policy)` returns the used units and the microseconds until more are available, or an error text. Writes nothing new. */
  readonly read: string
  /** `add(key, policy, values)` adds requests admitted elsewhere, regardless of the quota. `values` come from `addedValues`. */
  readonly add: string
  /** `renew(key, policy, ticket)` notes that a request is still in flight. Only for algorithms that count requests in flight. */
  readonly renew?: string
}
