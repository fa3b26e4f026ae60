import type { Log } from '../../../../shared/log.ts'
import { within } from '../../../../shared/within.ts'
import type { PlanList, PlanStore } from '../../plans/plan-store.ts'
import { errorCodeOf, reasonOf } from './errors.ts'
import { planKeyOf, planOwnerOf } from './keys.ts'
import type { RedisClient, RedisNode } from './run-script.ts'

/** Keys that one step of a listing looks at, and the steps of one: some milliseconds of Redis's time in all. */
const KEYS_IN_STEP = 1000
const MAX_STEPS = 100

/**
 * Plans in Redis: each is a text without an expiry, beside the counters of its client. Applications write them too.
 *
 * @param options.keyPrefix of `keyPrefixOf`
 * @param options.timeoutMs for each answer
 */
export function createRedisPlans(options: {
  readonly redis: RedisClient
  readonly keyPrefix: string
  readonly isAnswering: (key: string) => boolean
  /** As the one above, for all keys. */
  readonly areAllAnswering: () => boolean
  readonly timeoutMs: number
  readonly log: Log
}): PlanStore {
  const { redis, keyPrefix, isAnswering, areAllAnswering, timeoutMs, log } = options
  /** Braces and brackets of a pattern stand for themselves in none of these. */
  const pattern = planKeyOf(keyPrefix, { partitionKey: '*', keyName: '*' })

  /** @returns whether there are no others on this node */
  async function listNode(node: RedisNode, limit: number, found: Set<string>): Promise<boolean> {
    let cursor = '0'
    for (let step = 0; step < MAX_STEPS; step++) {
      const [next, keys] = await within(timeoutMs, node.scan(cursor, 'MATCH', pattern, 'COUNT', KEYS_IN_STEP))
      for (const key of keys) found.add(key)
      if (next === '0') return true
      if (found.size > limit) return false
      cursor = next
    }
    return false
  }

  /** Undefined where the key holds something else. */
  async function readText(key: string): Promise<string | null | undefined> {
    try {
      return await redis.get(key)
    } catch (error) {
      if (errorCodeOf(error) === 'WRONGTYPE') return undefined
      throw error
    }
  }

  async function readAll(limit: number): Promise<PlanList> {
    const found = new Set<string>()
    let isAll = true
    for (const node of 'nodes' in redis ? redis.nodes('master') : [redis])
      isAll = found.size <= limit && (await listNode(node, limit, found)) && isAll
    const listed = await within(
      timeoutMs,
      Promise.all(
        Array.from(found)
          .slice(0, limit)
          .map(async (key) => ({
            owner: planOwnerOf(keyPrefix, key),
            plan: await readText(key),
          })),
      ),
    )
    const plans = listed.flatMap(({ owner, plan }) => (owner && plan ? [{ ...owner, plan }] : []))
    return { plans, isAll: isAll && found.size <= limit }
  }

  return {
    async get(owner) {
      const key = planKeyOf(keyPrefix, owner)
      if (!isAnswering(key)) return 'unavailable'
      try {
        const plan = await within(timeoutMs, redis.get(key))
        return plan ? { plan, key } : { key }
      } catch (error) {
        log.warn({ reason: reasonOf(error) }, 'cannot read the plan of a client from Redis')
        return 'unavailable'
      }
    },
    async set(owner, plan) {
      const key = planKeyOf(keyPrefix, owner)
      if (!isAnswering(key)) return 'unavailable'
      try {
        if (plan === undefined) return (await within(timeoutMs, redis.del(key))) > 0 ? 'done' : 'absent'
        await within(timeoutMs, redis.set(key, plan))
        return 'done'
      } catch (error) {
        log.error({ reason: reasonOf(error) }, 'Redis did not confirm the plan of a client')
        return 'uncertain'
      }
    },
    async list(limit) {
      if (!areAllAnswering()) return 'unavailable'
      try {
        return await readAll(limit)
      } catch (error) {
        log.warn({ reason: reasonOf(error) }, 'cannot list the plans of clients in Redis')
        return 'unavailable'
      }
    },
  }
}
