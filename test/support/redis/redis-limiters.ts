import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import { startRedisLimiter, waitUntilAnswering, type RunningLimiter } from '../limiter/limiters.ts'

/* Opens what tests of the limiter on a real Redis need. Call these in a test or in `beforeEach`: everything is closed as the test ends. */

/** Closes what a test has opened, as the test ends. */
export function closeAfterTest<Opened extends { close: () => unknown }>(opened: Opened): Opened {
  onTestFinished(() => void opened.close())
  return opened
}

/** A Redis client, for looking into Redis or acting as its operator. */
export function openRedis(url: string): Redis {
  const redis = new Redis(url)
  onTestFinished(() => redis.disconnect())
  return redis
}

/** A replica's limiter, with a connection of its own. Has the parameters of `startRedisLimiter`. */
export function openLimiter(...given: Parameters<typeof startRedisLimiter>): RunningLimiter {
  return closeAfterTest(startRedisLimiter(...given))
}

/** Opens a limiter as `openLimiter` does, and waits until Redis decides. */
export async function openAnsweringLimiter(
  ...given: Parameters<typeof startRedisLimiter>
): Promise<RunningLimiter> {
  const limiter = openLimiter(...given)
  await waitUntilAnswering(limiter)
  return limiter
}

/** The rights of a Redis user that docs/redis.md names, as words of `ACL SETUSER`. */
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
