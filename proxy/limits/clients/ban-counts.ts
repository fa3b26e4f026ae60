import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { RedisClient } from '../store/redis/run-script.ts'
import type { BanPolicy } from '../../policy.ts'
import { BoundedMemory } from './bounded-memory.ts'
import { banLengthMs } from './client-entry.ts'

/** The ban, and the policy's window: refusals count for `windowMs` from the first one. */
export type BanTerms = { readonly ban: BanPolicy; readonly windowMs: number }

/** How long a client that was just banned is not counted: a ban is known everywhere within a second. */
const SETTLE_S = 2
/** How long a client is not banned again, by whichever process. Longer than it is not counted. */
const ONCE_S = SETTLE_S + 1
/** Unanswered commands at a time. Beyond, and while Redis does not answer, this process counts by itself. */
const MAX_PENDING = 1000

type Counts = BoundedMemory | RateLimiterRedis

/** `once` makes sure that only one of several processes that count at the same time bans the client. */
const NAMES = ['refusals', 'bans', 'once'] as const

type CountsByName<Kind extends Counts = Counts> = { readonly [name in (typeof NAMES)[number]]: Kind }

export type BanCountsOptions = BanTerms & {
  /** The Redis in which replicas count together; undefined: in this process. */
  readonly redis: RedisClient | undefined
  /** The prefix of keys in Redis, which a colon follows. */
  readonly keyStart: string
  /** Whether there is any use in asking for a key. */
  readonly isAnswering: (key: string) => boolean
  /** Milliseconds of a monotonic clock, for the counts in this process. */
  readonly now: () => number
}

/** Counts the refusals of one policy's clients, and the bans that these lead to. */
export class BanCounts {
  readonly #keyStart: string
  readonly #isAnswering: (key: string) => boolean
  #ban: BanPolicy
  readonly #local: CountsByName<BoundedMemory>
  readonly #shared: CountsByName<RateLimiterRedis> | undefined
  /** Refusals that are being counted. */
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
        // Until every process knows of the ban, Redis is not asked about each refusal.
        inMemoryBlockOnConsumed: options.ban.after,
        inMemoryBlockDuration: 1,
      }),
      bans: new RateLimiterRedis({ ...lengths.bans, ...sharedOptions('bans') }),
      once: new RateLimiterRedis({ ...lengths.once, ...sharedOptions('once') }),
    }
  }

  /** The current `ban` of the rule: refusals and bans stay counted. */
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
   * @param windowMs for how long the refusals of a client count whose first one this is, where it is not always the same
   * @returns the number of the ban in a row, from 1, if the client must be banned now; otherwise 0. Of several processes that
   *   count at the same time, one gets it
   */
  async countRefusal(partitionKey: string, windowMs?: number): Promise<number> {
    this.#pending += 1
    try {
      return await this.#count(partitionKey, windowMs)
    } catch {
      // Redis has failed in between: a client that goes on is refused again, and counted then.
      return 0
    } finally {
      this.#pending -= 1
    }
  }

  /** The next ban of the client is a first one again. Never rejects. */
  async forgive(partitionKey: string): Promise<void> {
    const counts = this.#countsFor(partitionKey)
    await Promise.allSettled(NAMES.map((name) => counts[name].delete(partitionKey)))
  }

  async #count(partitionKey: string, windowMs: number | undefined): Promise<number> {
    const { refusals, bans, once } = this.#countsFor(partitionKey)
    // Only the process that consumes `once` first bans. After a failure of that process, another one does once it has expired.
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

  /** Chooses the counts in Redis or, while one of its servers is away or too much is pending, those of this process. */
  #countsFor(partitionKey: string): CountsByName {
    if (!this.#shared || this.#pending > MAX_PENDING) return this.#local
    const areAnswering = NAMES.every((name) => this.#isAnswering(`${this.#keyStart}:${name}:${partitionKey}`))
    return areAnswering ? this.#shared : this.#local
  }
}

/** Options of the counter: the client is banned when it exceeds `points`. `duration` is in seconds. */
function refusalOptions({ ban, windowMs }: BanTerms): { readonly points: number; readonly duration: number } {
  return { points: ban.after - 1, duration: Math.ceil(windowMs / 1000) }
}

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
