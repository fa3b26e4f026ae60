import { RateLimiterRedis } from 'rate-limiter-flexible'
import type { Policy } from '../policy.ts'
import { describePolicy, KEY_PREFIX, keyOf, type RedisPolicy } from './redis-policy.ts'
import { runScript, type RedisClient } from './redis-script.ts'
import { addScript } from './redis-scripts.ts'

/**
 * One policy's counters in Redis, of fixed windows: the library's `RateLimiterRedis`, whose `get`, `set`, `delete` and `penalty` are
 * kept, with keys and durations as they are needed here. The library floors durations to whole seconds, and below one
 * second its keys never expire; see docs/decisions/counting.md.
 *
 * A counter is a plain integer, and always has an expiry.
 */
export class RedisCounters extends RateLimiterRedis {
  readonly policy: Policy
  readonly #redis: RedisClient
  readonly #described: RedisPolicy

  constructor(policy: Policy, redis: RedisClient) {
    super({
      storeClient: redis,
      keyPrefix: KEY_PREFIX,
      points: policy.quota,
      duration: policy.windowMs / 1000,
      rejectIfRedisNotReady: true,
    })
    this.policy = policy
    this.#redis = redis
    this.#described = describePolicy(policy)
  }

  override getKey(partitionKey: string): string {
    return keyOf(this.#described, partitionKey)
  }

  override parseKey(key: string): string {
    return key.slice(KEY_PREFIX.length + 2, -this.#described.keySuffix.length)
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
