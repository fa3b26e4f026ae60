import { within } from '../../../../../shared/within.ts'
import type { Algorithm } from '../../../algorithms/algorithm.ts'
import type { RedisNodes } from '../nodes.ts'
import { createShardingCheck, type ShardingCheck } from './sharding.ts'
import { isOfReplica } from '../errors.ts'
import { leaveReplica } from '../connecting/leaving.ts'
import { commandsNeeded, findRefusalAt, type AlgorithmUse, type Refusal } from './rights.ts'
import type { RedisClient, RedisScript } from '../run-script.ts'
import { decideScript } from '../scripts/decide.ts'

/**
 * Timeout of the check for a proxy that distributes keys. The check runs once for each connection, in several round trips: if a slow start
 * of Redis ended it, counters would be shared through such a proxy from then on.
 */
const SHARDING_TIMEOUT_MS = 10_000

/** Sends test requests, which show whether Redis can decide. No method rejects. */
export class Probes {
  readonly #redis: RedisClient
  readonly #nodes: RedisNodes
  readonly #keyPrefix: string
  readonly #readUsed: () => readonly AlgorithmUse[]
  readonly #timeoutMs: number
  readonly #sharding: ShardingCheck

  /**
   * @param options.keyPrefix from `keyPrefixOf`
   * @param options.readUsed the algorithms of the policies that have been counted; called at each probe
   * @param options.timeoutMs for each answer
   */
  constructor(options: {
    readonly redis: RedisClient
    readonly nodes: RedisNodes
    readonly keyPrefix: string
    readonly readUsed: () => readonly AlgorithmUse[]
    readonly timeoutMs: number
  }) {
    const { redis, nodes, keyPrefix, readUsed, timeoutMs } = options
    this.#redis = redis
    this.#nodes = nodes
    this.#keyPrefix = keyPrefix
    this.#readUsed = readUsed
    this.#timeoutMs = timeoutMs
    this.#sharding = createShardingCheck({ redis, keyPrefix, timeoutMs: SHARDING_TIMEOUT_MS })
  }

  /** Whether a node decides a test request of each algorithm in time. */
  async probe(node: string): Promise<boolean> {
    const key = this.#keyAt(node)
    if (key === undefined) return false
    const answers = this.#readUsed().map(({ algorithm }) =>
      this.runs(decideScript(new Set([algorithm])), 1, testRequest(key, algorithm), this.#timeoutMs),
    )
    return !(await Promise.all(answers)).includes(false)
  }

  /**
   * Returns the error of a node if it refuses a command that decisions need, or the reason why counters cannot be shared there;
   * otherwise undefined, even if the node does not answer.
   */
  async findRefusal(node: string): Promise<Refusal | undefined> {
    const redis = this.#redis
    const key = this.#keyAt(node)
    if (redis.status !== 'ready' || key === undefined) return undefined
    const commands = commandsNeeded(this.#readUsed(), redis.isCluster)
    const [refusal, isSharded] = await Promise.all([
      findRefusalAt(redis, key, { commands, timeoutMs: this.#timeoutMs }),
      this.#sharding.find(),
    ])
    if (refusal) this.followMaster(refusal.reply)
    return refusal ?? (isSharded === undefined ? undefined : { command: undefined, reply: isSharded })
  }

  /**
   * Whether Redis runs the script without an error, in time. The script is sent as text: if Redis did not know its digest,
   * the script would be sent again, after later commands.
   */
  async runs(script: RedisScript, keyCount: number, args: string[], limitMs: number): Promise<boolean> {
    if (this.#redis.status !== 'ready') return false
    try {
      const reply = await within(limitMs, this.#redis.eval(script.source, keyCount, args))
      if (!Array.isArray(reply) || typeof reply[0] === 'number') return true
      this.followMaster(String(reply[0]))
      return false
    } catch {
      return false
    }
  }

  /** Looks for the master if this error shows that a replica has answered. */
  followMaster(reason: string): void {
    if (isOfReplica(reason)) leaveReplica(this.#redis, reason)
  }

  /** The start of keys for the counters that probes use. They expire after a second, and no client's counter has such a key or prefix. */
  #keyAt(node: string): string | undefined {
    return this.#nodes.findKey(node, `${this.#keyPrefix}:probe`)
  }
}

/** Returns key and arguments with which `decideScript` decides a test request: one unit, of a quota of a million per second. */
function testRequest(key: string, { name, takesUnits }: Algorithm): string[] {
  const policy = [name, 'enforce', '1000000', '1000', takesUnits ? 'units' : 'one']
  const charge = takesUnits ? ['1', '1'] : ['1']
  return [`${key}:${name}`, '1', ...policy, '1', ...charge]
}
