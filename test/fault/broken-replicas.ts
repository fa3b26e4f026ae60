import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { createSharedLimiter } from '../../proxy/limits/store/create-limiter.ts'
import type { Charge, Decision, PolicyState } from '../../proxy/limits/limiter.ts'
import { connectRedis } from '../../proxy/limits/store/redis/connecting/connection.ts'
import type { RedisClient } from '../../proxy/limits/store/redis/run-script.ts'
import { ADDS_ONCE } from '../../proxy/limits/store/redis/scripts/add-once.ts'
import { parseRedisUrl } from '../../proxy/limits/store/redis/connecting/url.ts'
import { limiterOptions } from '../support/limiter/limiters.ts'
import { recordLog } from '../support/limiter/recordings.ts'
import type { Replica } from './stage.ts'

/* Limiters as they are often built, each broken in one way. The judge must find every defect. */

/** Reads the counter, compares, writes: two concurrent requests read the same count. */
export function startReadThenWrite(url: string): Replica {
  const redis = new Redis(url)
  redis.on('error', () => undefined)

  async function decide(charges: readonly Charge[]): Promise<Decision> {
    const keys = charges.map(({ policy, partitionKey }) => {
      return `sluice:1:{${partitionKey}}:${policy.name}:${policy.windowMs}`
    })
    const counts = (await redis.mget(...keys)).map(Number)
    const states = charges.map(({ policy }, index): PolicyState => {
      const left = policy.quota - (counts[index] ?? 0)
      return { policy, exceeded: left <= 0, remaining: Math.max(0, left - 1), resetMs: policy.windowMs }
    })
    const refusedBy = states.find(({ exceeded }) => exceeded)?.policy
    if (refusedBy) return { outcome: 'refused', refusedBy, states }
    for (const [index, { policy }] of charges.entries()) {
      const key = keys[index] ?? ''
      if ((await redis.incr(key)) === 1) await redis.pexpire(key, policy.windowMs)
    }
    return { outcome: 'allowed', states }
  }

  return {
    decide: (charges) => decide(charges).catch(() => ({ outcome: 'unavailable', uncertain: true })),
    settle: () => undefined,
    storeState: () => (redis.status === 'ready' ? 'available' : 'unavailable'),
    close: () => redis.disconnect(),
  }
}

/** Keeps the library's defaults, so it resends a command after a reconnect. */
export function startResending(url: string): Replica {
  const redis = new Redis(url, { maxRetriesPerRequest: null, retryStrategy: () => 10 })
  redis.on('error', () => undefined)
  return withClient(redis, () => redis.disconnect())
}

/** Adds what it admitted in an outage, gets no answer, and adds it again under another mark. */
export function startAddingAgain(url: string): Replica {
  let hasLostAnswer = false
  return startWithAddOnce(url, async (add, [, ...rest]) => {
    const answer = await add([`sluice:1:added:${randomUUID()}`, ...rest])
    if (hasLostAnswer) return answer
    hasLostAnswer = true
    throw new Error('the answer is lost')
  })
}

/** Never adds what it admitted in an outage, as insurance limiters do. */
export function startForgetting(url: string): Replica {
  return startWithAddOnce(url, () => Promise.resolve(1))
}

type Add = (keysAndArguments: string[]) => Promise<unknown>
type Evaluate = (source: string, count: number, args: string[]) => Promise<unknown>

function startWithAddOnce(
  url: string,
  change: (add: Add, keysAndArguments: string[]) => Promise<unknown>,
): Replica {
  const connection = connectRedis(parseRedisUrl(url), recordLog().log)
  const { client } = connection
  const evaluate: Evaluate = (source, count, args) => client.call('EVAL', source, count, ...args)
  Object.assign(client, {
    // The library accepts an array as well as separate arguments.
    eval: (source: string, count: number, ...given: (string | string[])[]) => {
      const args = given.flat()
      return source.startsWith(ADDS_ONCE)
        ? change((changed) => evaluate(source, count, changed), args)
        : evaluate(source, count, args)
    },
  })
  return withClient(client, () => connection.close())
}

function withClient(redis: RedisClient, disconnect: () => void): Replica {
  const limiter = createSharedLimiter(redis, limiterOptions({ storeTimeoutMs: 100 }))
  return {
    ...limiter,
    close() {
      limiter.close()
      disconnect()
    },
  }
}
