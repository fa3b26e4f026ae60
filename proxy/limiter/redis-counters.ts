import { RateLimiterRedis } from 'rate-limiter-flexible'
import type { Policy } from '../policy.ts'
import { addScript, runScript, type RedisClient } from './redis-scripts.ts'

/** The format of keys and values: another one gets another number, so that old and new gateways do not mix them up. */
const KEY_PREFIX = 'sluice:1'

/**
 * One policy's counters in Redis: the library's `RateLimiterRedis`, whose `get`, `set`, `delete` and `penalty` are
 * kept, with keys and durations as they are needed here. The library floors durations to whole seconds, and below one
 * second its keys never expire; see docs/decisions/counting.md.
 *
 * A counter is a plain integer under `sluice:1:{<partition key>}:<policy>:<window in ms>`, and always has an expiry. The
 * braces make all counters of one client share a hash slot. The quota is not part of the key, so a changed one takes
 * effect at once; a changed window starts new counters.
 */
export class RedisCounters extends RateLimiterRedis {
  readonly policy: Policy
  /** What the decision's script wants to know of the policy, made once. */
  readonly quotaArgument: string
  readonly windowArgument: string
  /** For a request's first charge, and for its other charges. */
  readonly kindFirst: 'E' | 'S'
  readonly kindJoined: 'e' | 's'
  readonly #redis: RedisClient
  readonly #keySuffix: string

  constructor(policy: Policy, redis: RedisClient) {
    super({
      storeClient: redis,
      keyPrefix: KEY_PREFIX,
      points: policy.quota,
      duration: policy.windowMs / 1000,
      rejectIfRedisNotReady: true,
    })
    this.policy = policy
    this.quotaArgument = String(policy.quota)
    this.windowArgument = String(policy.windowMs)
    this.kindFirst = policy.mode === 'enforce' ? 'E' : 'S'
    this.kindJoined = policy.mode === 'enforce' ? 'e' : 's'
    this.#redis = redis
    this.#keySuffix = `}:${policy.name}:${policy.windowMs}`
  }

  override getKey(partitionKey: string): string {
    return `${KEY_PREFIX}:{${partitionKey}${this.#keySuffix}`
  }

  override parseKey(key: string): string {
    return key.slice(KEY_PREFIX.length + 2, -this.#keySuffix.length)
  }

  /**
   * The library's seam for every change of a counter.
   *
   * @param isSet whether `points` replaces the count and begins the window anew, instead of being added
   * @returns the count and the milliseconds left, as the library expects them
   */
  async _upsert(key: string, points: number, durationMs: number, isSet = false): Promise<unknown> {
    const windowMs = Math.round(durationMs)
    if (!isSet) return runScript(this.#redis, addScript, 1, [key, String(points), String(windowMs)])
    await this.#redis.set(key, points, 'PX', windowMs)
    return [points, windowMs]
  }
}
