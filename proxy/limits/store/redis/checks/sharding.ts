import { randomUUID } from 'node:crypto'
import { endedWithin } from '../../../../../shared/within.ts'
import { errorCodeOf, reasonOf } from '../errors.ts'
import { script, type RedisClient } from '../run-script.ts'

export type ShardingCheck = {
  /** Returns why counters cannot be shared at this address; undefined if no reason was found. Never rejects. */
  find(): Promise<string | undefined>
}

/** Keys that are tried: if two servers have a tenth and nine tenths of them, all of these are on one of them once in thirty cases. */
const KEYS_TRIED = 32

/** The keys are deleted as they are looked for: this is for those that nobody looks for any more. */
const KEPT_MS = 60_000

const SHARDED =
  'a proxy at this address distributes keys over several servers, and each would count on its own: ' +
  'set REDIS_URL to one Redis, or to a cluster as redis+cluster://'

/**
 * Finds out whether a proxy such as predixy or twemproxy is in front of several servers. It sends a script where its first
 * key leads, with all other keys, and each of them counts there instead of on its own server: no command fails, and
 * clients get a multiple of their quota. So keys are written by one script, and deleted one by one: a proxy leads those
 * commands elsewhere, and they find nothing.
 *
 * A key may also be missing for other reasons, such as eviction or a failover: it counts only if the same keys are
 * missing a second time. The last result holds where Redis does not answer.
 *
 * @param options.timeoutMs for the whole check
 */
export function createShardingCheck(options: {
  readonly redis: RedisClient
  readonly keyPrefix: string
  readonly timeoutMs: number
}): ShardingCheck {
  const { redis, keyPrefix, timeoutMs } = options
  let found: string | undefined

  async function look(): Promise<void> {
    const id = randomUUID()
    const keys = Array.from({ length: KEYS_TRIED }, (_, i) => `${keyPrefix}:probe:${id}:${i}`)
    try {
      const first = await findMissing(redis, keys)
      const isSharded = first !== '' && (await findMissing(redis, keys)) === first
      found = isSharded ? SHARDED : undefined
    } catch (error) {
      if (isOfCluster(error)) found = withAdvice(reasonOf(error), redis)
    }
  }

  return {
    async find() {
      // A cluster's own client sends each command to one node, and only about keys that are there.
      if (redis.isCluster || redis.status !== 'ready') return undefined
      await endedWithin(timeoutMs, look())
      return found
    },
  }
}

/** The keys that single-key commands do not find, after one script has written all of them. */
async function findMissing(redis: RedisClient, keys: readonly string[]): Promise<string> {
  await redis.eval(setScript.source, keys.length, ...keys, KEPT_MS)
  const deleted = await Promise.all(keys.map((key) => redis.del(key)))
  // Where the first one is missing as well, they are gone, and not elsewhere.
  return deleted[0] === 1 ? deleted.flatMap((count, i) => (count === 0 ? [i] : [])).join() : ''
}

const setScript = script(`
for _, key in ipairs(KEYS) do redis.call('SET', key, 0, 'PX', ARGV[1]) end
return #KEYS
`)

/** A reason for the log, with the setting that helps if it is a cluster configured as a single server. */
export function withAdvice(reason: string, redis: Pick<RedisClient, 'isCluster'>): string {
  return !redis.isCluster && isOfCluster(reason)
    ? `${reason} (a cluster: REDIS_URL has to begin with redis+cluster://)`
    : reason
}

function isOfCluster(error: unknown): boolean {
  return ['MOVED', 'ASK', 'CROSSSLOT', 'CLUSTERDOWN'].includes(errorCodeOf(error))
}
