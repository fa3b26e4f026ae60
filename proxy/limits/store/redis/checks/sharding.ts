import { randomUUID } from 'node:crypto'
import { endedWithin } from '../../../../../shared/within.ts'
import { errorCodeOf, reasonOf } from '../errors.ts'
import { script, type RedisClient } from '../run-script.ts'

export type ShardingCheck = {
  /** Returns why counters cannot be shared at this address; undefined if no reason was found. Never rejects. */
  find(): Promise<string | undefined>
}

/** The number of keys to try. If one of two servers has nine tenths of all keys, all these keys are on it in one of thirty cases. */
const KEYS_TRIED = 32

/** The keys are deleted when they are looked up. The expiry is for keys that are never looked up. */
const KEPT_MS = 60_000

const SHARDED =
  'a proxy at this address distributes keys over several servers, and each would count on its own: ' +
  'set REDIS_URL to one Redis, or to a cluster as redis+cluster://'

/**
 * Finds out whether a proxy such as predixy or twemproxy is in front of several servers. Such a proxy sends a script with all
 * its keys to the server of the first key, where each key counts instead of on its own server: no command fails, and clients
 * get a multiple of their quota. So keys are written by one script and deleted one by one: a proxy sends these commands to
 * other servers, which do not find the keys.
 *
 * A key may also be missing for other reasons, such as eviction or a failover. So the result counts only if the same keys are
 * missing a second time. If Redis does not answer, the last result holds.
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

/** Returns which keys single-key commands do not find, after one script has written all of them. */
async function findMissing(redis: RedisClient, keys: readonly string[]): Promise<string> {
  await redis.eval(setScript.source, keys.length, ...keys, KEPT_MS)
  const deleted = await Promise.all(keys.map((key) => redis.del(key)))
  // If the first key is missing as well, the keys are gone, rather than on other servers.
  return deleted[0] === 1 ? deleted.flatMap((count, i) => (count === 0 ? [i] : [])).join() : ''
}

const setScript = script(`
for _, key in ipairs(KEYS) do redis.call('SET', key, 0, 'PX', ARGV[1]) end
return #KEYS
`)

/** Returns a reason for the log, with the setting that helps if a cluster is configured as a single server. */
export function withAdvice(reason: string, redis: Pick<RedisClient, 'isCluster'>): string {
  return !redis.isCluster && isOfCluster(reason)
    ? `${reason} (a cluster: REDIS_URL has to begin with redis+cluster://)`
    : reason
}

function isOfCluster(error: unknown): boolean {
  return ['MOVED', 'ASK', 'CROSSSLOT', 'CLUSTERDOWN'].includes(errorCodeOf(error))
}
