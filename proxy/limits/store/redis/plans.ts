import type { Log } from '../../../../shared/log.ts'
import { within } from '../../../../shared/within.ts'
import type { PlanList, PlanOwner, PlanStore } from '../../plans/plan-store.ts'
import { errorCodeOf, reasonOf } from './errors.ts'
import { planKeyOf, planOwnerOf } from './keys.ts'
import type { RedisClient, RedisNode } from './run-script.ts'

/** The number of keys that one step of a listing reads, and the maximum number of steps: some milliseconds of Redis's time in total. */
const KEYS_IN_STEP = 1000
const MAX_STEPS = 100

export type RedisPlansOptions = {
  readonly redis: RedisClient
  /** The prefix of keys in Redis (`keyPrefixOf`). */
  readonly keyPrefix: string
  /** Whether the server of a key is expected to answer. */
  readonly isAnswering: (key: string) => boolean
  /** Whether all nodes are expected to answer. */
  readonly areAllAnswering: () => boolean
  /** Milliseconds for each answer. */
  readonly timeoutMs: number
  readonly log: Log
}

/** Plans in Redis: each is a text without an expiry, separate from the counters of its client. Applications write them too. */
export class RedisPlans implements PlanStore {
  readonly #options: RedisPlansOptions
  /**
   * Matches the keys of all plans, and the counters of a rule that is named `plan`. Neither braces nor the characters of the key prefix are
   * special in a pattern.
   */
  readonly #pattern: string

  constructor(options: RedisPlansOptions) {
    this.#options = options
    this.#pattern = planKeyOf(options.keyPrefix, { partitionKey: '*', keyName: '*' })
  }

  async get(owner: PlanOwner): ReturnType<PlanStore['get']> {
    const { redis, keyPrefix, isAnswering, timeoutMs, log } = this.#options
    const key = planKeyOf(keyPrefix, owner)
    if (!isAnswering(key)) return 'unavailable'
    try {
      const plan = await within(timeoutMs, redis.get(key))
      return plan ? { plan, key } : { key }
    } catch (error) {
      log.warn({ reason: reasonOf(error) }, 'cannot read the plan of a client from Redis')
      return 'unavailable'
    }
  }

  async set(owner: PlanOwner, plan: string | undefined): ReturnType<PlanStore['set']> {
    const { redis, keyPrefix, isAnswering, timeoutMs, log } = this.#options
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
  }

  async list(limit: number): ReturnType<PlanStore['list']> {
    const { areAllAnswering, log } = this.#options
    if (!areAllAnswering()) return 'unavailable'
    try {
      return await this.#readAll(limit)
    } catch (error) {
      log.warn({ reason: reasonOf(error) }, 'cannot list the plans of clients in Redis')
      return 'unavailable'
    }
  }

  async #readAll(limit: number): Promise<PlanList> {
    const { redis, timeoutMs } = this.#options
    const found = new Map<string, PlanOwner>()
    let isAll = true
    for (const node of 'nodes' in redis ? redis.nodes('master') : [redis])
      isAll = found.size <= limit && (await this.#listNode(node, limit, found)) && isAll
    const reading = Array.from(found)
      .slice(0, limit)
      .map(async ([key, owner]) => ({ owner, plan: await this.#readText(key) }))
    const listed = await within(timeoutMs, Promise.all(reading))
    const plans = listed.flatMap(({ owner, plan }) => (plan ? [{ ...owner, plan }] : []))
    return { plans, isAll: isAll && found.size <= limit }
  }

  /** @returns whether all plans on this node were found */
  async #listNode(node: RedisNode, limit: number, found: Map<string, PlanOwner>): Promise<boolean> {
    const { keyPrefix, timeoutMs } = this.#options
    let cursor = '0'
    for (let step = 0; step < MAX_STEPS; step++) {
      const scanning = node.scan(cursor, 'MATCH', this.#pattern, 'COUNT', KEYS_IN_STEP)
      const [next, keys] = await within(timeoutMs, scanning)
      for (const key of keys) {
        const owner = planOwnerOf(keyPrefix, key)
        if (owner) found.set(key, owner)
      }
      if (next === '0') return true
      if (found.size > limit) return false
      cursor = next
    }
    return false
  }

  /** Resolves to undefined if the key holds something other than a text. */
  async #readText(key: string): Promise<string | null | undefined> {
    try {
      return await this.#options.redis.get(key)
    } catch (error) {
      if (errorCodeOf(error) === 'WRONGTYPE') return undefined
      throw error
    }
  }
}
