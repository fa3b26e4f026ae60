import type { Policy } from '../../../../policy.ts'
import type { PendingCharge } from '../../memory/limiter.ts'
import { keyOf, type RedisPolicy } from '../keys.ts'
import { inOneWrite, type RedisClient, type RedisScript } from '../run-script.ts'
import { addOnceScript } from '../scripts/add-once.ts'
import { PolicyArguments } from '../scripts/policy-arguments.ts'

/**
 * Adds requests that were admitted locally. Resolves to whether Redis has confirmed this. If they are sent again with the
 * same id, they are added only once.
 */
export type AddOnce = (id: string, charges: readonly PendingCharge[]) => Promise<boolean>

/**
 * @param options.now milliseconds of the clock on which the charges' instants are
 * @param options.runs whether Redis runs the script without an error, in time
 */
export function createAddOnce(options: {
  readonly redis: RedisClient
  readonly keyPrefix: string
  readonly describe: (policy: Policy) => RedisPolicy
  readonly now: () => number
  readonly runs: (script: RedisScript, keyCount: number, args: string[]) => Promise<boolean>
}): AddOnce {
  const { redis, keyPrefix, describe, now, runs } = options

  /** @param mark the key that records that the requests were added; the same whenever they are sent again */
  function addPart(mark: string, charges: readonly PendingCharge[], nowMs: number): Promise<boolean> {
    if (charges.length === 0) return Promise.resolve(true)
    const policies = new PolicyArguments()
    const keys = [mark]
    const added: string[] = []
    for (const charge of charges) {
      const policy = describe(charge.policy)
      const values = policy.algorithm.redis.addedValues(charge, nowMs, charge.policy)
      keys.push(keyOf(policy, charge.partitionKey))
      added.push(policies.numberOf(policy), String(values.length), ...values)
    }
    // The mark is kept until the last of the windows has ended: after that, none of this is sent again.
    const maxMs = Math.ceil(Math.max(...charges.map(({ endsAtMs }) => endsAtMs)) - nowMs)
    const script = addOnceScript(policies.algorithms)
    return runs(script, keys.length, [...keys, String(maxMs), ...policies.toArguments(), ...added])
  }

  return async (id, charges) => {
    const nowMs = now()
    const running = charges.filter(({ endsAtMs }) => endsAtMs > nowMs)
    if (!redis.isCluster) return addPart(`${keyPrefix}:added:${id}`, running, nowMs)
    // In a cluster a command reaches the counters of one client, and the mark has to be in their hash slot.
    const byClient = Map.groupBy(running, ({ partitionKey }) => partitionKey)
    const parts = inOneWrite(redis, () =>
      Array.from(byClient, ([client, part]) => addPart(`${keyPrefix}:{${client}}:added:${id}`, part, nowMs)),
    )
    const added = await Promise.all(parts)
    return !added.includes(false)
  }
}
