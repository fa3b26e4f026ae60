import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import type { RedisClient } from '../../../proxy/limits/store/redis/run-script.ts'
import { RedisLimiter } from '../../../proxy/limits/store/redis/limiter.ts'
import {
  ampleTimeoutMs,
  startRedisLimiter,
  waitUntilAnswering,
  type RunningLimiter,
} from '../limiter/limiters.ts'

/* What tests of the limiter on a real Redis open. In a test or in `beforeEach`: it is closed as the test ends. */

/** Closes as the test ends what it has opened. */
export function closeAfterTest<Opened extends { close: () => unknown }>(opened: Opened): Opened {
  onTestFinished(() => void opened.close())
  return opened
}

/** A client of Redis, to look at it or to do what its operator does. */
export function openRedis(url: string): Redis {
  const redis = new Redis(url)
  onTestFinished(() => redis.disconnect())
  return redis
}

/** A replica's limiter, with a connection of its own; takes what `startRedisLimiter` takes. */
export function openLimiter(...given: Parameters<typeof startRedisLimiter>): RunningLimiter {
  return closeAfterTest(startRedisLimiter(...given))
}

/** The same, once Redis decides. */
export async function openAnsweringLimiter(
  ...given: Parameters<typeof startRedisLimiter>
): Promise<RunningLimiter> {
  const limiter = openLimiter(...given)
  await waitUntilAnswering(limiter)
  return limiter
}

/**
 * Counters in Redis without what decides when Redis does not: no breaker, no local counters.
 *
 * @param redis not closed here
 */
export function countInRedis(
  redis: RedisClient,
  { timeoutMs = ampleTimeoutMs, keyPrefix = 'sluice:1' } = {},
): RedisLimiter {
  return new RedisLimiter({
    redis,
    keyPrefix,
    timeoutMs,
    now: () => performance.now(),
    hooks: {
      answered: () => undefined,
      failed: () => undefined,
      counterBroken: () => undefined,
      decideWithout: () => ({ outcome: 'unavailable', uncertain: true }),
      refused: () => undefined,
    },
  })
}

/** The rights of a user of Redis that docs/redis.md names, as words of `ACL SETUSER`. */
export function readDocumentedRights(): Record<
  'counting' | 'sliding' | 'runTime' | 'bans' | 'cluster',
  string[]
> {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/redis.md'), 'utf8')
  const find = (pattern: RegExp, text = page.replaceAll(/\s+/g, ' ')): string[] => {
    const [, words] = pattern.exec(text) ?? []
    if (words === undefined) throw new Error(`docs/redis.md has nothing like ${pattern}`)
    return words.trim().split(/\s+/)
  }
  return {
    counting: find(/ACL SETUSER sluice on >password ([^]*?)\n\n/, page),
    sliding: find(/with `([^`]*)` for rules with a sliding window/),
    runTime: find(/`([^`]*)` for bans and limits at run time/),
    bans: find(/`([^`]*)` in addition for rules with `ban`/),
    cluster: find(/and `([^`]*)` in a cluster/),
  }
}
