import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { RedisClient } from '../store/redis/run-script.ts'
import type { BanPolicy } from '../../policy.ts'
import { BoundedMemory } from './bounded-memory.ts'
import { banLengthMs } from './client-entry.ts'

/** Counts the refusals of one policy's clients, and the bans that these lead to. */
export type BanCounts = {
  /**
   * Counts a refusal. Never rejects.
   *
   * @param windowMs for how long the refusals of a client count whose first one this is, where it is not always the same
   * @returns the number of the ban in a row, from 1, if the client must be banned now; otherwise 0. Of several processes that
   *   count at the same time, one gets it
   */
  countRefusal(partitionKey: string, windowMs?: number): Promise<number>
  /** The next ban of the client is a first one again. Never rejects. */
  forgive(partitionKey: string): Promise<void>
  /** The current `ban` of the rule: refusals and bans stay counted. */
  useTerms(terms: BanTerms): void
}

/** `windowMs`: that of the policy; refusals count for this time from the first one. */
export type BanTerms = { readonly ban: BanPolicy; readonly windowMs: number }

/** How long a client that was just banned is not counted: a ban is known everywhere within a second. */
const SETTLE_S = 2
/** How long a client is not banned again, by whichever process. Longer than it is not counted. */
const ONCE_S = SETTLE_S + 1
/** Unanswered commands at a time. Beyond, and while Redis does not answer, this process counts by itself. */
const MAX_PENDING = 1000

/**
 * @param options.redis where replicas count together; undefined: in this process
 * @param options.keyStart the prefix of keys in Redis, which a colon follows
 */
export function createBanCounts(
  options: BanTerms & {
    readonly redis: RedisClient | undefined
    readonly keyStart: string
    readonly isAnswering: (key: string) => boolean
    /** Milliseconds of a monotonic clock, for the counts in this process. */
    readonly now: () => number
  },
): BanCounts {
  const { redis, keyStart, isAnswering, now } = options
  let { ban } = options
  const windowS = Math.ceil(options.windowMs / 1000)
  // More points than these are refused, and the client is banned.
  const refusalOptions = { points: ban.after - 1, duration: windowS }
  const localRefusals = new BoundedMemory(refusalOptions, now)
  const localBans = new BoundedMemory({ points: 0, duration: 1 }, now)
  const localOnce = new BoundedMemory({ points: 1, duration: ONCE_S }, now)
  const shared = redis && {
    refusals: new RateLimiterRedis({
      ...refusalOptions,
      storeClient: redis,
      keyPrefix: `${keyStart}:refusals`,
      rejectIfRedisNotReady: true,
      insuranceLimiter: localRefusals,
      // Between the ban and its being heard of, Redis is not asked about each refusal.
      inMemoryBlockOnConsumed: ban.after,
      inMemoryBlockDuration: 1,
    }),
    bans: new RateLimiterRedis({
      points: 0,
      duration: 1,
      storeClient: redis,
      keyPrefix: `${keyStart}:bans`,
      rejectIfRedisNotReady: true,
      insuranceLimiter: localBans,
    }),
    once: new RateLimiterRedis({
      points: 1,
      duration: ONCE_S,
      storeClient: redis,
      keyPrefix: `${keyStart}:once`,
      rejectIfRedisNotReady: true,
      insuranceLimiter: localOnce,
    }),
  }
  let pending = 0
  const names = ['refusals', 'bans', 'once'] as const
  const counts = (partitionKey: string): { readonly [name in (typeof names)[number]]: Counts } =>
    shared &&
    pending <= MAX_PENDING &&
    names.every((name) => isAnswering(`${keyStart}:${name}:${partitionKey}`))
      ? shared
      : { refusals: localRefusals, bans: localBans, once: localOnce }

  async function count(partitionKey: string, windowMs: number | undefined): Promise<number> {
    const { refusals, bans, once } = counts(partitionKey)
    // Of those who count at the same time one bans; and who should have may have failed.
    if (
      (await consumed(refusals, partitionKey, windowMs)) < ban.after ||
      (await consumed(once, partitionKey)) > 1
    )
      return 0
    await refusals.block(partitionKey, SETTLE_S)
    const before = await bans.get(partitionKey)
    const times = (before?.consumedPoints ?? 0) + 1
    const rememberS = Math.ceil((banLengthMs(ban, times) + ban.maxMs) / 1000)
    await bans.set(partitionKey, times, rememberS)
    return times
  }

  return {
    useTerms(terms) {
      ban = terms.ban
      const points = ban.after - 1
      const duration = Math.ceil(terms.windowMs / 1000)
      Object.assign(localRefusals, { points, duration })
      if (shared) Object.assign(shared.refusals, { points, duration, inMemoryBlockOnConsumed: ban.after })
    },
    async countRefusal(partitionKey, windowMs) {
      pending += 1
      try {
        return await count(partitionKey, windowMs)
      } catch {
        // Redis has failed in between: whoever goes on is refused again, and counted then.
        return 0
      } finally {
        pending -= 1
      }
    },
    async forgive(partitionKey) {
      const { refusals, bans, once } = counts(partitionKey)
      const all = [refusals, bans, once]
      await Promise.allSettled(all.map((each) => each.delete(partitionKey)))
    },
  }
}

type Counts = BoundedMemory | RateLimiterRedis

/** The library counts a request that it refuses too, and says so by rejecting. */
async function consumed(refusals: Counts, key: string, windowMs?: number): Promise<number> {
  const options = windowMs === undefined ? {} : { customDuration: Math.ceil(windowMs / 1000) }
  try {
    return (await refusals.consume(key, 1, options)).consumedPoints
  } catch (answer) {
    if (answer instanceof RateLimiterRes) return answer.consumedPoints
    throw answer
  }
}
