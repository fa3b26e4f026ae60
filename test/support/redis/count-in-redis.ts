import { createRedisNodes } from '../../../proxy/limits/store/redis/nodes.ts'
import { RedisLimiter, type RedisLimiterOptions } from '../../../proxy/limits/store/redis/limiter.ts'
import type { RedisClient } from '../../../proxy/limits/store/redis/run-script.ts'
import { ampleTimeoutMs } from '../limiter/limiters.ts'

/**
 * Counters in Redis alone: no circuit breaker, no counters of this process, and no cache of clients over the limit.
 *
 * @param redis the connection, which stays open
 * @param options.failed called with the reason why Redis has not decided
 * @param options.refused called with each refusal
 */
export function countInRedis(
  redis: RedisClient,
  options: {
    readonly timeoutMs?: number
    readonly keyPrefix?: string
    readonly failed?: (reason: string) => void
    readonly refused?: () => void
  } = {},
): RedisLimiter {
  const { timeoutMs = ampleTimeoutMs, keyPrefix = 'sluice:1', failed = nothing, refused = nothing } = options
  return new RedisLimiter({
    redis,
    keyPrefix,
    timeoutMs,
    now: () => performance.now(),
    nodes: createRedisNodes(redis),
    isAvailable: () => true,
    events: { answered: nothing, failed, counterBroken: nothing, needsMoreCommands: nothing },
    local: uncounted,
    overLimit: { record: refused, gaveBack: nothing },
  })
}

const nothing = (): void => undefined

const uncounted: RedisLimiterOptions['local'] = {
  decideWithout: () => ({ outcome: 'unavailable', uncertain: true }),
  addInFlight: nothing,
  removeInFlight: nothing,
  takeBackPending: () => false,
  settle: nothing,
}
