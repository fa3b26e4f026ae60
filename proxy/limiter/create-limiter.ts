import type { Log } from '../../shared/log.ts'
import type { Telemetry } from '../telemetry.ts'
import { createExhaustedClients } from './exhausted-clients.ts'
import { createFailoverLimiter } from './failover-limiter.ts'
import { createChannelLimiter, type LimiterPort } from './limiter-channel.ts'
import type { Limiter } from './limiter.ts'
import { createMemoryLimiter, type MemoryLimiter } from './memory-limiter.ts'
import type { RedisClient } from './redis-scripts.ts'
import { decideWithoutStore } from './without-store.ts'

export type CounterLimiter = Limiter & LimiterControls

/** Counts in this process, so it answers at once. */
export type EmbeddedLimiter = Pick<MemoryLimiter, 'decide'> & LimiterControls

type LimiterControls = {
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

export type LimiterOptions = {
  /** After which a question to a store outside this process counts as failed. */
  readonly storeTimeoutMs: number
  /** The most counters in this process's memory. */
  readonly storeMaxKeys: number
  /** Any integer that clients cannot know, such as a random one. */
  readonly seed: number
  /** Milliseconds of a monotonic clock, such as `performance.now`. */
  readonly now: () => number
  readonly log: Log
  readonly telemetry: LimiterTelemetry
}

/** The limiter of a gateway that is one process, or of a worker where there is Redis. */
export function createLimiter(
  options: LimiterOptions & { readonly redis: RedisClient | undefined },
): CounterLimiter {
  return options.redis ? createSharedLimiter(options.redis, options) : createEmbeddedLimiter(options)
}

/**
 * Counters in this process: for a gateway that is one process and has no Redis, and for the primary process of one
 * whose workers ask it, through `serveLimiter`.
 */
export function createEmbeddedLimiter(options: LimiterOptions): EmbeddedLimiter {
  const { storeMaxKeys, seed, now, telemetry } = options
  const embedded = createMemoryLimiter({ maxKeys: storeMaxKeys, seed, now })
  observeMemory(telemetry, embedded)
  return {
    decide: (charges) => embedded.decide(charges),
    storeState: () => 'embedded',
    forget: () => undefined,
    close: () => undefined,
  }
}

/**
 * Counters in Redis, shared by all replicas and workers, with all that keeps Redis from being asked in vain: clients
 * known to be exhausted, and local counters while it is away.
 *
 * @param redis a connection that nothing else uses
 */
function createSharedLimiter(redis: RedisClient, options: LimiterOptions): CounterLimiter {
  const { storeTimeoutMs, storeMaxKeys, seed, now, log, telemetry } = options
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
  observeMemory(telemetry, failover.local)
  telemetry.observeTable('exhausted', () => exhausted.readUse())
  return {
    decide: (charges) => exhausted.findRefusal(charges) ?? failover.decide(charges),
    storeState: () => failover.storeState(),
    forget: (policyName, partitionKey) => exhausted.forget(policyName, partitionKey),
    close: () => failover.close(),
  }
}

/** The limiter of a worker where there is no Redis: the counters are embedded in the primary process. */
export function createWorkerLimiter(port: LimiterPort, options: LimiterOptions): CounterLimiter {
  const { storeTimeoutMs, storeMaxKeys, seed, now, log, telemetry } = options
  const local = createMemoryLimiter({ maxKeys: storeMaxKeys, seed, now })
  let loggedAtMs = -Infinity
  const channel = createChannelLimiter({
    port,
    timeoutMs: storeTimeoutMs,
    now,
    hooks: {
      answered: (durationMs) => telemetry.storeAnswered(durationMs),
      failed(reason) {
        telemetry.storeFailed()
        if (now() - loggedAtMs < 60_000) return
        loggedAtMs = now()
        log.warn({ reason }, 'the primary process does not decide: each rule does what its onStoreError says')
      },
      counterBroken: () => undefined,
      decideWithout: (charges, uncertain) =>
        decideWithoutStore(charges, uncertain, (localCharges) => local.decide(localCharges)),
      refused: () => undefined,
    },
  })
  return {
    decide: (charges) => channel.decide(charges),
    storeState: () => 'embedded',
    forget: () => undefined,
    close: () => channel.close(),
  }
}

function observeMemory(telemetry: LimiterTelemetry, memory: MemoryLimiter): void {
  telemetry.observeTable('counters', () => memory.readUse())
  telemetry.observeTable('sliding', () => memory.readSlidingUse().clients)
  telemetry.observeTable('sliding_times', () => memory.readSlidingUse().times)
}
