import type { Log } from '../../shared/log.ts'
import type { Telemetry } from '../telemetry.ts'
import { createExhaustedClients } from './exhausted-clients.ts'
import { createFailoverLimiter } from './failover-limiter.ts'
import type { Limiter } from './limiter.ts'
import { createMemoryLimiter } from './memory-limiter.ts'
import type { RedisClient } from './redis-scripts.ts'

export type CounterLimiter = Limiter & {
  /** `embedded`: the counters are in this process. `away`: each rule does what its `onStoreError` says. */
  storeState(): 'embedded' | 'answering' | 'away'
  /** Forgets what this process alone knows of a client, so that a reset of its shared counter is heard here. */
  forget(policyName: string, partitionKey: string): void
  /** Ends timers and answers what waits. The connection to Redis is the caller's to close. */
  close(): void
}

export type LimiterTelemetry = Pick<
  Telemetry,
  'storeAnswered' | 'storeFailed' | 'breakerChanged' | 'observeTable'
>

const EXHAUSTED_CLIENTS = 50_000

/**
 * The limiter of one process: with Redis, shared counters that fall back to local ones; without, embedded ones.
 *
 * @param options.redis a connection that nothing else uses, or undefined for embedded counters
 * @param options.storeTimeoutMs after which a command counts as failed
 * @param options.storeMaxKeys the most counters in this process's memory
 * @param options.seed any integer that clients cannot know, such as a random one
 * @param options.now milliseconds of a monotonic clock, such as `performance.now`
 */
export function createLimiter(options: {
  readonly redis: RedisClient | undefined
  readonly storeTimeoutMs: number
  readonly storeMaxKeys: number
  readonly seed: number
  readonly now: () => number
  readonly log: Log
  readonly telemetry: LimiterTelemetry
}): CounterLimiter {
  const { redis, storeTimeoutMs, storeMaxKeys, seed, now, log, telemetry } = options
  if (!redis) {
    const embedded = createMemoryLimiter({ maxKeys: storeMaxKeys, seed, now })
    telemetry.observeTable('counters', () => embedded.readUse())
    return {
      decide: (charges) => embedded.decide(charges),
      storeState: () => 'embedded',
      forget: () => undefined,
      close: () => undefined,
    }
  }
  const exhausted = createExhaustedClients(EXHAUSTED_CLIENTS, now)
  const failover = createFailoverLimiter({
    redis,
    timeoutMs: storeTimeoutMs,
    maxKeys: storeMaxKeys,
    seed,
    now,
    log,
    telemetry,
    refused: (charges, refusal, askedAtMs) => exhausted.note(charges, refusal, askedAtMs),
  })
  telemetry.observeTable('counters', () => failover.local.readUse())
  telemetry.observeTable('exhausted', () => exhausted.readUse())
  return {
    decide: (charges) => exhausted.findRefusal(charges) ?? failover.decide(charges),
    storeState: () => failover.storeState(),
    forget: (policyName, partitionKey) => exhausted.forget(policyName, partitionKey),
    close: () => failover.close(),
  }
}
