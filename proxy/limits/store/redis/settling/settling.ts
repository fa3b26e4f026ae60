import { countsInFlight } from '../../../algorithms/registry.ts'
import type { Reservation } from '../../../limiter.ts'
import { hasCountedNothing } from '../errors.ts'
import { keyOf, type RedisPolicy } from '../keys.ts'
import { onConnected, runScript, type RedisClient } from '../run-script.ts'
import { PolicyArguments } from '../scripts/policy-arguments.ts'
import { settleScript } from '../scripts/settle.ts'

export type Settling = {
  /**
   * Gives back units of a reservation; negative units are added. A settlement is sent once, with all others of this turn of
   * the event loop. If it does not reach Redis, the reserved units stay counted until their window ends. Only ends of requests in flight
   * are sent again, at the next connection or with `sendAgain`, because they can be executed twice.
   */
  settle(reservation: Reservation, units: number): void
  /** Sends the ends of requests in flight again that Redis may not have executed. */
  sendAgain(): void
}

/** A settlement, as for `Settling.settle`. */
export type SettledUnits = { readonly reservation: Reservation; readonly units: number }

/** The maximum number of settlements in a command. Redis settles this many in less than half a millisecond. */
const SETTLED_IN_COMMAND = 256

/** The maximum number of ends of requests in flight that are kept to be sent again. The others count until Redis forgets them. */
const ENDS_KEPT = 10_000

/**
 * Sends settlements to Redis. In a cluster, each reservation is a command of its own, because a command reaches only
 * one node.
 *
 * @param options.notExecuted called with settlements that Redis has certainly not executed
 */
export function createSettling(options: {
  readonly redis: RedisClient
  readonly describe: (reservation: Reservation) => RedisPolicy
  readonly notExecuted: (settled: readonly SettledUnits[]) => void
}): Settling {
  const { redis, describe, notExecuted } = options
  let waiting: SettledUnits[] = []
  /** Ends of requests in flight that may not have reached Redis. */
  let ends: SettledUnits[] = []

  function settle(settled: readonly SettledUnits[]): void {
    if (settled.length > 0 && waiting.push(...settled) === settled.length) setImmediate(send)
  }

  function sendAgain(): void {
    settle(ends.splice(0))
  }

  function keepEnds(settled: readonly SettledUnits[]): void {
    const own = settled.filter(({ reservation }) => countsInFlight(reservation.charge.policy))
    ends = ends.concat(own).slice(0, ENDS_KEPT)
  }

  function send(): void {
    const all = waiting
    waiting = []
    if (redis.status !== 'ready') {
      keepEnds(all)
      notExecuted(all)
      return
    }
    const size = redis.isCluster ? 1 : SETTLED_IN_COMMAND
    for (let at = 0; at < all.length; at += size) {
      const part = all.slice(at, at + size)
      const { keyCount, keysAndArguments } = toCommand(part, describe)
      runScript(redis, settleScript, keyCount, keysAndArguments).then(
        (reply) => {
          // Redis has refused an end: a replica does, and a user without the right.
          if (typeof reply === 'string') keepEnds(part)
        },
        (error: unknown) => {
          keepEnds(part)
          // After other errors it is unknown whether the command was executed, so it is not sent again.
          if (hasCountedNothing(error)) notExecuted(part)
        },
      )
    }
  }

  redis.on('ready', sendAgain)
  if (redis.isCluster) onConnected(redis, sendAgain)
  return { settle: (reservation, units) => settle([{ reservation, units }]), sendAgain }
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
