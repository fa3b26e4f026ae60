import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { RedisClient } from '../store/redis/run-script.ts'
import type { BanPolicy } from '../../policy.ts'
import { BoundedMemory } from './bounded-memory.ts'
import { banLengthMs } from './client-entry.ts'

/** The ban, and the window in which refusals lead to it: `windowMs` from the first refusal. */
export type BanTerms = { readonly ban: BanPolicy; readonly windowMs: number }

/** How long refusals of a client are not counted after a ban. The ban reaches every process within a second. */
const SETTLE_S = 2
/** How long no process bans the client again. Longer than `SETTLE_S`. */
const ONCE_S = SETTLE_S + 1
/** Maximum unanswered commands. Above it, and while Redis does not answer, this process counts on its own. */
const MAX_PENDING = 1000

type Counts = BoundedMemory | RateLimiterRedis

/** `once` ensures that only one process bans the client if several count at the same time. */
const NAMES = ['refusals', 'bans', 'once'] as const

type CountsByName<Kind extends Counts = Counts> = { readonly [name in (typeof NAMES)[number]]: Kind }

export type BanCountsOptions = BanTerms & {
  /** The Redis in which replicas count together; undefined: counts are kept in this process. */
  readonly redis: RedisClient | undefined
  /** The prefix of keys in Redis; a colon follows it. */
  readonly keyStart: string
  /** Whether the Redis server of a key is answering. */
  readonly isAnswering: (key: string) => boolean
  /** Milliseconds of a monotonic clock, for the counts in this process. */
  readonly now: () => number
}

/** Counts the refusals of one policy's clients, and the resulting bans. */
export class BanCounts {
  readonly #keyStart: string
  readonly #isAnswering: (key: string) => boolean
  #ban: BanPolicy
  readonly #local: CountsByName<BoundedMemory>
  readonly #shared: CountsByName<RateLimiterRedis> | undefined
  /** The number of refusals that are being counted. */
  #pending = 0

  constructor(options: BanCountsOptions) {
    const { redis, keyStart, now } = options
    this.#keyStart = keyStart
    this.#isAnswering = options.isAnswering
    this.#ban = options.ban
    const lengths = { bans: { points: 0, duration: 1 }, once: { points: 1, duration: ONCE_S } }
    this.#local = {
      refusals: new BoundedMemory(refusalOptions(options), now),
      bans: new BoundedMemory(lengths.bans, now),
      once: new BoundedMemory(lengths.once, now),
    }
    const sharedOptions = (name: keyof CountsByName) => ({
      storeClient: redis,
      keyPrefix: `${keyStart}:${name}`,
      rejectIfRedisNotReady: true,
      insuranceLimiter: this.#local[name],
    })
    this.#shared = redis && {
      refusals: new RateLimiterRedis({
        ...refusalOptions(options),
        ...sharedOptions('refusals'),
        // Until every process knows of the ban, further refusals do not reach Redis.
        inMemoryBlockOnConsumed: options.ban.after,
        inMemoryBlockDuration: 1,
      }),
      bans: new RateLimiterRedis({ ...lengths.bans, ...sharedOptions('bans') }),
      once: new RateLimiterRedis({ ...lengths.once, ...sharedOptions('once') }),
    }
  }

  /** Applies a changed `ban` of the rule. The counts of refusals and bans are kept. */
  useTerms(terms: BanTerms): void {
    this.#ban = terms.ban
    const changed = refusalOptions(terms)
    Object.assign(this.#local.refusals, changed)
    if (this.#shared)
      Object.assign(this.#shared.refusals, { ...changed, inMemoryBlockOnConsumed: terms.ban.after })
  }

  /**
   * Counts a refusal. Never rejects.
   *
   * @param windowMs how long refusals count if this is the client's first; undefined: the policy's constant window
   * @returns if the client must be banned now, which ban in a row it is, from 1; otherwise 0. Only one of several processes that count at
   *   the same time gets a number above 0
   */
  async countRefusal(partitionKey: string, windowMs?: number): Promise<number> {
    this.#pending += 1
    try {
      return await this.#count(partitionKey, windowMs)
    } catch {
      // Redis failed in between. If the client continues, its next refusal is counted.
      return 0
    } finally {
      this.#pending -= 1
    }
  }

  /** Makes the next ban of the client count as its first. Never rejects. */
  async forgive(partitionKey: string): Promise<void> {
    const counts = this.#countsFor(partitionKey)
    await Promise.allSettled(NAMES.map((name) => counts[name].delete(partitionKey)))
  }

  async #count(partitionKey: string, windowMs: number | undefined): Promise<number> {
    const { refusals, bans, once } = this.#countsFor(partitionKey)
    // Only the first process to consume `once` bans the client. If that process fails, another one can after `once` has expired.
    if (
      (await consumed(refusals, partitionKey, windowMs)) < this.#ban.after ||
      (await consumed(once, partitionKey)) > 1
    )
      return 0
    await refusals.block(partitionKey, SETTLE_S)
    const before = await bans.get(partitionKey)
    const times = (before?.consumedPoints ?? 0) + 1
    const rememberS = Math.ceil((banLengthMs(this.#ban, times) + this.#ban.maxMs) / 1000)
    await bans.set(partitionKey, times, rememberS)
    return times
  }

  /** Chooses the counts in Redis or, while one of its servers is unavailable or too many commands are pending, those of this process. */
  #countsFor(partitionKey: string): CountsByName {
    if (!this.#shared || this.#pending > MAX_PENDING) return this.#local
    const areAnswering = NAMES.every((name) => this.#isAnswering(`${this.#keyStart}:${name}:${partitionKey}`))
    return areAnswering ? this.#shared : this.#local
  }
}

/** Options of the counter of refusals. A client that exceeds `points` is banned. `duration` is in seconds. */
function refusalOptions({ ban, windowMs }: BanTerms): { readonly points: number; readonly duration: number } {
  return { points: ban.after - 1, duration: Math.ceil(windowMs / 1000) }
}

/** The library also counts requests that it refuses, for which it rejects. */
async function consumed(refusals: Counts, key: string, windowMs?: number): Promise<number> {
  const options = windowMs === undefined ? {} : { customDuration: Math.ceil(windowMs / 1000) }
  try {
    return (await refusals.consume(key, 1, options)).consumedPoints
  } catch (answer) {
    if (answer instanceof RateLimiterRes) return answer.consumedPoints
    throw answer
  }
}
