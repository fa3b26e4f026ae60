import { LEASE_MS } from '../../../algorithms/concurrency/concurrency.ts'
import { countsInFlight } from '../../../algorithms/registry.ts'
import type { Charge, Reservation } from '../../../limiter.ts'
import { hasCountedNothing } from '../errors.ts'
import { keyOf, type RedisPolicy } from '../keys.ts'
import { onConnected, runScript, type RedisClient } from '../run-script.ts'
import { PolicyArguments } from '../scripts/policy-arguments.ts'
import { settleScript } from '../scripts/settle.ts'

export type Settling = {
  /**
   * Gives back units of a reservation; negative units are added. A settlement is sent once, with all others of this turn of
   * the event loop. If it does not reach Redis, the reserved units stay counted until their window ends. Only ends of requests in flight
   * are sent again, with the methods below, because they can be executed twice.
   */
  settle(reservation: Reservation, units: number): void
  /** Sends the ends of requests in flight again that Redis may not have executed. */
  sendAgain(): void
  /**
   * Sends the last ends of requests in flight again if their counters may be on another server by now. A replica that has become the master
   * may not know what the old one has executed.
   */
  sendToNewServers(): void
}

/** A settlement, as for `Settling.settle`. */
type SettledUnits = { readonly reservation: Reservation; readonly units: number }

/** The maximum number of settlements in a command. Redis settles this many in less than half a millisecond. */
const SETTLED_IN_COMMAND = 256

/** The number of ends of requests in flight that are kept to be sent again. The others count until Redis forgets them. */
const ENDS_KEPT = 10_000
/** Fewer ends are not worth looking through. */
const ENDS_DROPPED = 256

/**
 * Sends settlements to Redis. In a cluster, each reservation is a command of its own, because a command reaches only
 * one node.
 *
 * @param options.serverOf the server that has the counter of a charge; another text if another server may have it
 * @param options.notExecuted called with settlements that Redis has certainly not executed
 * @param options.now milliseconds of a monotonic clock
 */
export function createSettling(options: {
  readonly redis: RedisClient
  readonly describe: (reservation: Reservation) => RedisPolicy
  readonly serverOf: (charge: Charge) => string
  readonly notExecuted: (settled: readonly SettledUnits[]) => void
  readonly now: () => number
}): Settling {
  const { redis, describe, serverOf, notExecuted, now } = options
  let waiting: Waiting[] = []
  const ends = new LastEnds(now)

  function settle(settled: readonly Waiting[]): void {
    if (settled.length > 0 && waiting.push(...settled) === settled.length) setImmediate(send)
  }

  function send(): void {
    const all = waiting
    waiting = []
    const size = redis.isCluster ? 1 : SETTLED_IN_COMMAND
    for (let at = 0; at < all.length; at += size) {
      const part = all.slice(at, at + size)
      const [first] = part
      if (first) sendPart(part, serverOf(first.reservation.charge))
    }
  }

  /** @param server the server that has the counters of all these settlements */
  function sendPart(part: readonly Waiting[], server: string): void {
    if (redis.status !== 'ready') {
      ends.add(part, server, false)
      notExecuted(part)
      return
    }
    const { keyCount, keysAndArguments } = toCommand(part, describe)
    runScript(redis, settleScript, keyCount, keysAndArguments).then(
      // A text is the reason for which Redis has refused an end: a replica does, and a user without the right.
      (reply) => ends.add(part, server, typeof reply !== 'string'),
      (error: unknown) => {
        ends.add(part, server, false)
        // After other errors it is unknown whether the command was executed, so it is not sent again.
        if (hasCountedNothing(error)) notExecuted(part)
      },
    )
  }

  const isElsewhere = ({ reservation, server }: End): boolean => serverOf(reservation.charge) !== server
  const sendAgain = (): void => settle(ends.take((end) => !end.isExecuted || isElsewhere(end)))

  if (redis.isCluster) onConnected(redis, sendAgain)
  return {
    settle: (reservation, units) => settle([{ reservation, units, endedAtMs: now() }]),
    sendAgain,
    sendToNewServers: () => settle(ends.take(isElsewhere)),
  }
}

/** A settlement to be sent. `endedAtMs`: when its request ended. */
type Waiting = SettledUnits & { readonly endedAtMs: number }

/** An end of a request in flight that was sent to a server. */
type End = Waiting & { readonly server: string; readonly isExecuted: boolean }

/** The last ends of requests in flight. */
class LastEnds {
  readonly #now: () => number
  /** Oldest first. */
  #ends: End[] = []
  /** The number of ends at which those that Redis has forgotten are dropped. */
  #dropAt = ENDS_DROPPED

  constructor(now: () => number) {
    this.#now = now
  }

  /**
   * Adds the ends among these settlements.
   *
   * @param isExecuted whether the server has certainly executed them
   */
  add(settled: readonly Waiting[], server: string, isExecuted: boolean): void {
    for (const { reservation, units, endedAtMs } of settled)
      if (countsInFlight(reservation.charge.policy))
        this.#ends.push({ reservation, units, endedAtMs, server, isExecuted })
    if (this.#ends.length < this.#dropAt) return
    const sinceMs = this.#sinceMs
    this.#ends = this.#ends.filter(({ endedAtMs }) => endedAtMs > sinceMs).slice(-ENDS_KEPT)
    this.#dropAt = Math.max(ENDS_DROPPED, 2 * this.#ends.length)
  }

  /** Removes and returns the ends that are selected, except those of requests that Redis has forgotten itself. */
  take(isTaken: (end: End) => boolean): readonly End[] {
    const sinceMs = this.#sinceMs
    const taken: End[] = []
    const others: End[] = []
    for (const end of this.#ends) if (end.endedAtMs > sinceMs) (isTaken(end) ? taken : others).push(end)
    this.#ends = others
    return taken
  }

  /** Redis has forgotten requests that ended before. */
  get #sinceMs(): number {
    return this.#now() - LEASE_MS
  }
}

/** What `settleScript` gets. */
function toCommand(
  part: readonly SettledUnits[],
  describe: (reservation: Reservation) => RedisPolicy,
): { readonly keyCount: number; readonly keysAndArguments: string[] } {
  const policies = new PolicyArguments()
  const keys: string[] = []
  const settled: string[] = []
  for (const { reservation, units } of part) {
    const policy = describe(reservation)
    keys.push(keyOf(policy, reservation.charge.partitionKey))
    settled.push(policies.numberOf(policy), String(reservation.ticket), String(units))
  }
  return { keyCount: keys.length, keysAndArguments: [...keys, ...policies.toArguments(), ...settled] }
}
