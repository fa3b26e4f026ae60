import type { Reservation } from '../../../limiter.ts'
import { keyOf, type RedisPolicy } from '../keys.ts'
import { runScript, type RedisClient } from '../run-script.ts'
import { PolicyArguments } from '../scripts/policy-arguments.ts'
import { settleScript } from '../scripts/settle.ts'

export type Settling = {
  /**
   * Gives back units of a reservation; negative units are added. A settlement is sent once, with all others of this turn of
   * the event loop. If it does not reach Redis, the reserved units stay counted until their window ends.
   */
  settle(reservation: Reservation, units: number): void
}

/** The maximum number of settlements in a command. Redis settles this many in less than half a millisecond. */
const SETTLED_IN_COMMAND = 256

/**
 * Sends settlements to Redis. In a cluster, each reservation is a command of its own, because a command reaches only
 * one node.
 */
export function createSettling(options: {
  readonly redis: RedisClient
  readonly describe: (reservation: Reservation) => RedisPolicy
}): Settling {
  const { redis, describe } = options
  let waiting: Waiting[] = []

  function send(): void {
    const all = waiting
    waiting = []
    if (redis.status !== 'ready') return
    const size = redis.isCluster ? 1 : SETTLED_IN_COMMAND
    for (let at = 0; at < all.length; at += size) {
      const part = all.slice(at, at + size)
      const policies = new PolicyArguments()
      const keys: string[] = []
      const settled: string[] = []
      for (const { reservation, units } of part) {
        const policy = describe(reservation)
        keys.push(keyOf(policy, reservation.charge.partitionKey))
        settled.push(policies.numberOf(policy), String(reservation.ticket), String(units))
      }
      // After an error it is unknown whether the command was executed, so it is not sent again.
      const args = [...keys, ...policies.toArguments(), ...settled]
      runScript(redis, settleScript, keys.length, args).catch(() => undefined)
    }
  }

  return {
    settle(reservation, units) {
      if (waiting.push({ reservation, units }) === 1) setImmediate(send)
    },
  }
}

type Waiting = { readonly reservation: Reservation; readonly units: number }
