import { within } from '../../../../../shared/within.ts'
import type { RedisNodes } from '../nodes.ts'
import { createShardingCheck } from './sharding.ts'
import { isOfReplica } from '../errors.ts'
import { leaveReplica } from '../connecting/leaving.ts'
import { commandsNeeded, findRefusalAt, type AlgorithmUse, type Refusal } from './rights.ts'
import type { RedisClient, RedisScript } from '../run-script.ts'
import { decideScript } from '../scripts/decide.ts'

/** Test requests, which tell whether Redis can decide. */
export type Probes = {
  /** Whether a node decides a test request in time. */
  probe(node: string): Promise<boolean>
  /**
   * The error of a node if it refuses a command that decisions need, or why counters cannot be shared there; undefined also
   * if it does not answer.
   */
  findRefusal(node: string): Promise<Refusal | undefined>
  /**
   * Whether Redis runs the script without an error, in time. It is sent as text: sent as a digest that Redis does not
   * know, it would be sent again, behind later commands.
   */
  runs(script: RedisScript, keyCount: number, args: string[], limitMs: number): Promise<boolean>
  /** Looks for the master where this error shows that a replica has answered. */
  followMaster(reason: string): void
}

/**
 * Timeout of the check for a proxy that distributes keys. It is made once at each connection, in several round trips: if a slow start of
 * Redis ended it, counters would be shared through such a proxy from then on.
 */
const SHARDING_TIMEOUT_MS = 10_000

/**
 * @param options.keyPrefix of `keyPrefixOf`
 * @param options.readUsed the algorithms of the policies that have been counted; called at each probe
 * @param options.timeoutMs for each answer
 */
export function createProbes(options: {
  readonly redis: RedisClient
  readonly nodes: RedisNodes
  readonly keyPrefix: string
  readonly readUsed: () => readonly AlgorithmUse[]
  readonly timeoutMs: number
}): Probes {
  const { redis, nodes, keyPrefix, readUsed, timeoutMs } = options
  /** The counters that probes use. They expire after a second, and no client's counter has such a key or prefix. */
  const keyAt = (node: string): string | undefined => nodes.findKey(node, `${keyPrefix}:probe`)

  const sharding = createShardingCheck({ redis, keyPrefix, timeoutMs: SHARDING_TIMEOUT_MS })

  async function runs(
    script: RedisScript,
    keyCount: number,
    args: string[],
    limitMs: number,
  ): Promise<boolean> {
    if (redis.status !== 'ready') return false
    try {
      const reply = await within(limitMs, redis.eval(script.source, keyCount, args))
      if (!Array.isArray(reply) || typeof reply[0] === 'number') return true
      followMaster(String(reply[0]))
      return false
    } catch {
      return false
    }
  }

  function followMaster(reason: string): void {
    if (isOfReplica(reason)) leaveReplica(redis, reason)
  }

  return {
    async probe(node) {
      const key = keyAt(node)
      if (key === undefined) return false
      const answers = readUsed().map(({ algorithm }) => {
        const { name, takesUnits } = algorithm
        const policy = [name, 'enforce', '1000000', '1000', takesUnits ? 'units' : 'one']
        const charge = takesUnits ? ['1', '1'] : ['1']
        return runs(
          decideScript(new Set([algorithm])),
          1,
          [`${key}:${name}`, '1', ...policy, '1', ...charge],
          timeoutMs,
        )
      })
      return !(await Promise.all(answers)).includes(false)
    },
    async findRefusal(node) {
      const key = keyAt(node)
      if (redis.status !== 'ready' || key === undefined) return undefined
      const commands = commandsNeeded(readUsed(), redis.isCluster)
      const [refusal, isSharded] = await Promise.all([
        findRefusalAt(redis, key, { commands, timeoutMs }),
        sharding.find(),
      ])
      if (refusal) followMaster(refusal.reply)
      return refusal ?? (isSharded === undefined ? undefined : { command: undefined, reply: isSharded })
    },
    runs,
    followMaster,
  }
}
