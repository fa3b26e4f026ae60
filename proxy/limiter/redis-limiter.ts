import type { Policy } from '../policy.ts'
import { askCluster } from './ask-cluster.ts'
import { createDecisionBatches, type DecisionBatches, type DecisionHooks } from './decision-batches.ts'
import type { Charge } from './limiter.ts'
import type { UnsavedCharge } from './memory-limiter.ts'
import { RedisCounters } from './redis-counters.ts'
import {
  addOnceScript,
  decideScript,
  giveBackScript,
  runScript,
  type RedisClient,
  type RedisScript,
} from './redis-scripts.ts'

export type RedisLimiter = DecisionBatches & {
  /** Whether Redis decides, in time, about a counter of the gateway's own. */
  probe(): Promise<boolean>
  /** Adds what was admitted elsewhere; whether that is certain. Sent again with the same id, it is added only once. */
  addOnce(id: string, charges: readonly UnsavedCharge[]): Promise<boolean>
  /** One policy's counters, for an operator's questions. */
  countersOf(policy: Policy): RedisCounters
}

/** Redis decides them in less than half a millisecond, which is how long others may have to wait. */
const CHARGES_IN_COMMAND = 256

/** Counts for nobody and is gone after a second. No counter's key looks like it. */
const PROBE_KEY = 'sluice:1:probe'

const ADD_TIMEOUT_MS = 1000

/**
 * Counts in Redis. All requests that ask in the same turn of the event loop travel in one command, which decides each
 * of them atomically with all its charges. In a cluster each request has a command of its own, because one command
 * reaches one node.
 *
 * @param options.timeoutMs after which a decision is made without Redis
 * @param options.now milliseconds of a monotonic clock
 */
export function createRedisLimiter(options: {
  readonly redis: RedisClient
  readonly timeoutMs: number
  readonly now: () => number
  readonly hooks: DecisionHooks
}): RedisLimiter {
  const { redis, timeoutMs, now, hooks } = options
  const byPolicy = new Map<Policy, RedisCounters>()

  function countersOf(policy: Policy): RedisCounters {
    const known = byPolicy.get(policy)
    if (known) return known
    const counters = new RedisCounters(policy, redis)
    byPolicy.set(policy, counters)
    return counters
  }

  function giveBack({ policy, partitionKey }: Charge, leftMs: number): Promise<unknown> {
    return runScript(redis, giveBackScript, 1, [countersOf(policy).getKey(partitionKey), String(leftMs)])
  }

  async function ask(
    requests: readonly (readonly Charge[])[],
    isAwaited: () => boolean,
  ): Promise<readonly unknown[]> {
    const keys: string[] = []
    const parameters: string[] = []
    let kinds = ''
    for (const charges of requests) {
      let isFirst = true
      for (const { policy, partitionKey } of charges) {
        const counters = countersOf(policy)
        keys.push(counters.getKey(partitionKey))
        parameters.push(counters.quotaArgument, counters.windowArgument)
        kinds += isFirst ? counters.kindFirst : counters.kindJoined
        isFirst = false
      }
    }
    const reply = await runScript(
      redis,
      decideScript,
      keys.length,
      [...keys, ...parameters, kinds],
      isAwaited,
    )
    if (!Array.isArray(reply)) throw new TypeError('Redis replied no list')
    return reply as readonly unknown[]
  }

  /**
   * Whether Redis runs the script without an error, in time. Sent as text: it must not fall behind what is sent after
   * it, as it would where Redis does not know its digest.
   */
  async function runs(
    script: RedisScript,
    keyCount: number,
    args: string[],
    limitMs: number,
  ): Promise<boolean> {
    if (redis.status !== 'ready') return false
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('no answer in time')), limitMs)
    })
    try {
      const reply = await Promise.race([redis.eval(script.source, keyCount, args), timeout])
      return !Array.isArray(reply) || typeof reply[0] === 'number'
    } catch {
      return false
    } finally {
      clearTimeout(timer)
    }
  }

  /** @param mark the key that says that it was done; the same whenever it is sent again */
  function addPart(mark: string, charges: readonly UnsavedCharge[], nowMs: number): Promise<boolean> {
    if (charges.length === 0) return Promise.resolve(true)
    const keys = [mark]
    const parameters: string[] = []
    let longestMs = 0
    for (const { policy, partitionKey, amount, endsAtMs } of charges) {
      const leftMs = Math.ceil(endsAtMs - nowMs)
      longestMs = Math.max(longestMs, leftMs)
      keys.push(countersOf(policy).getKey(partitionKey))
      parameters.push(String(amount), String(leftMs))
    }
    // The mark is kept until the last of the windows has ended: after that, none of this is sent again.
    return runs(addOnceScript, keys.length, [...keys, String(longestMs), ...parameters], ADD_TIMEOUT_MS)
  }

  const batches = createDecisionBatches({
    counters: {
      batchSize: redis.isCluster ? 1 : CHARGES_IN_COMMAND,
      isConnected: () => redis.status === 'ready',
      ask: redis.isCluster
        ? ([charges = []], isAwaited) => askCluster(charges, (part) => ask([part], isAwaited), giveBack)
        : ask,
      hasCountedNothing: (error) => isReply(error) || isUnsent(error),
    },
    timeoutMs,
    now,
    hooks: {
      ...hooks,
      failed(reason) {
        hooks.failed(reason)
        // A master that became a replica refuses from inside the script, where the connection does not notice.
        if (reason.startsWith('READONLY')) redis.disconnect(true)
      },
    },
  })

  return {
    ...batches,
    probe: () => runs(decideScript, 1, [PROBE_KEY, '1000000', '1000', 'E'], timeoutMs),
    async addOnce(id, charges) {
      const nowMs = now()
      const running = charges.filter(({ endsAtMs }) => endsAtMs > nowMs)
      if (!redis.isCluster) return addPart(`sluice:1:added:${id}`, running, nowMs)
      // There a command is for the counters of one client, and its mark has to be where they are.
      const byClient = Map.groupBy(running, ({ partitionKey }) => partitionKey)
      const added = await Promise.all(
        Array.from(byClient, ([client, part]) => addPart(`sluice:1:{${client}}:added:${id}`, part, nowMs)),
      )
      return !added.includes(false)
    },
    countersOf,
  }
}

/** Redis itself answered with an error: it did not run the script. */
function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError'
}

/** The connection had ended, and the client library had not noticed yet when it was asked whether it is ready. */
function isUnsent(error: unknown): boolean {
  return error instanceof Error && error.message.includes('enableOfflineQueue options is false')
}
