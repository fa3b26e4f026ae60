import type { Steps } from '../../../shared/steps.ts'
import type { Log } from '../../../shared/log.ts'
import type { Policy } from '../../policy.ts'
import { onceAMinute } from '../../telemetry/paced-lines.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { toState, type CounterAdmin } from './counter-admin.ts'
import { StoreWatch } from './redis/checks/store-watch.ts'
import { OverLimitCache } from './over-limit-cache.ts'
import { RedisWithFallback } from './outage/redis-with-fallback.ts'
import { onResetMessage, IpcLimiter } from './workers/worker-limiter.ts'
import type { LimiterPort } from './workers/worker-messages.ts'
import type { Charge, Limiter } from '../limiter.ts'
import { MemoryLimiter } from './memory/limiter.ts'
import { keyPrefixOf } from './redis/keys.ts'
import { operatorTimeoutMs, RedisOperations } from './redis/operations.ts'
import { hasLease, Leasing } from './leases/leasing.ts'
import { ResetFeed } from './redis/feeds/reset-feed.ts'
import type { RedisClient } from './redis/run-script.ts'
import { createMemoryPlans } from '../plans/stored-plans.ts'
import { decideWithoutStore } from './outage/store-fallback.ts'

export type CounterLimiter = Limiter & LimiterControls & CounterAdmin

/** A limiter that counts in this process, so it answers at once. */
export type EmbeddedLimiter = Pick<MemoryLimiter, 'decide' | 'settle'> & LimiterControls & CounterAdmin

/** A limiter without counters of its own: they are in the primary process. */
export type WorkerLimiter = Limiter & LimiterControls & Pick<CounterAdmin, 'forget'>

type LimiterControls = {
  /**
   * `memory`: the counters are in this process. `unavailable`: each rule applies its `onStoreError`, in a cluster only to counters on
   * nodes that do not answer.
   */
  storeState(): 'memory' | 'available' | 'unavailable'
  /** The nodes of a Redis cluster whose circuit breakers are open; `storeState` is `unavailable` while there are any. */
  unavailableNodes?(): readonly string[]
  /** Whether the Redis server of this key, which may be one of several, is expected to answer. */
  isAnswering?(key: string): boolean
  /** Call it when another table of limits takes effect. Frees the counters in this process that the table does not use. */
  useTable(policies: readonly Policy[]): Steps<void>
  /** Stops timers and decides pending requests. The caller closes the connection to Redis. */
  close(): void
}

export type LimiterTelemetry = Pick<
  Telemetry,
  'storeAnswered' | 'storeFailed' | 'breakerChanged' | 'storeEvicted' | 'leaseChanged' | 'observeTable'
>

const OVER_LIMIT_CLIENTS = 50_000

export type LimiterOptions = {
  /** Timeout of a request to a store outside this process. */
  readonly storeTimeoutMs: number
  /** Part of every key in Redis, so that gateways with different tables can share one; undefined for none. */
  readonly namespace: string | undefined
  /** Maximum number of counters in the memory of this process. */
  readonly storeMaxKeys: number
  /** Any integer that clients cannot know, such as a random one. */
  readonly seed: number
  /** Milliseconds of a monotonic clock, such as `performance.now`. */
  readonly now: () => number
  /** The time of day, in milliseconds since 1970, for calendar windows. Default: the machine's clock. */
  readonly wallNow?: (() => number) | undefined
  readonly log: Log
  readonly telemetry: LimiterTelemetry
  /** Called when a client was reset, here or elsewhere, under the policy of this name or under all policies. */
  readonly onForget: CounterAdmin['forget']
}

/**
 * Counters in this process: for a gateway that is one process and has no Redis, and for a primary process whose workers
 * ask it through `ServedLimiter`.
 */
export function createEmbeddedLimiter(options: LimiterOptions): EmbeddedLimiter {
  const { storeMaxKeys, seed, now, wallNow, telemetry, onForget } = options
  const plans = createMemoryPlans()
  const embedded = new MemoryLimiter({ maxKeys: storeMaxKeys, seed, now, wallNow, plans })
  observeMemory(telemetry, embedded)
  return {
    decide: embedded.decide,
    settle: (reservation, costUnits) => embedded.settle(reservation, costUnits),
    useTable: (policies) => embedded.useTable(policies),
    plans,
    storeState: () => 'memory',
    inspect: (charges) =>
      Promise.resolve(
        plans.apply(charges).map((charge) => toState(charge.policy, 'store', embedded.read(charge))),
      ),
    reset(charges) {
      for (const { policy, partitionKey } of charges) {
        embedded.forget(policy.name, partitionKey)
        onForget(policy.name, partitionKey)
      }
      return Promise.resolve('done')
    },
    forget: onForget,
    close: () => undefined,
  }
}

/**
 * Counters in Redis, shared by all replicas and workers, with a cache of clients over the limit, and local counters
 * while Redis is unavailable.
 *
 * @param redis a connection that nothing else uses
 */
export function createSharedLimiter(redis: RedisClient, options: LimiterOptions): CounterLimiter {
  const { storeTimeoutMs, namespace, now, telemetry } = options
  const inRedis = { ...options, redis, keyPrefix: keyPrefixOf(namespace) }
  const counters = createSharedCounters(inRedis)
  const { overLimit, redisWithFallback, resetFeed, forget } = counters
  const ask = (charges: readonly Charge[]): ReturnType<Limiter['decide']> =>
    overLimit.findRefusal(charges) ?? redisWithFallback.decide(charges)
  const leasing = new Leasing({ store: redisWithFallback.shared.leaseStore, ask, now, telemetry })
  const timeoutMs = operatorTimeoutMs(storeTimeoutMs)
  const operations = new RedisOperations({ ...inRedis, ...counters, timeoutMs })
  const watch = new StoreWatch({ ...inRedis, isAnswering: () => redis.status === 'ready' })
  observeMemory(telemetry, redisWithFallback.local)
  telemetry.observeTable('over-limit', () => overLimit.readUse())
  telemetry.observeTable('leases', () => leasing.readUse())
  return {
    decide: (charges) => (hasLease(charges) ? leasing.decide(charges) : ask(charges)),
    settle: (reservation, costUnits) => redisWithFallback.settle(reservation, costUnits),
    storeState: () => redisWithFallback.storeState(),
    unavailableNodes: () => redisWithFallback.unavailableNodes(),
    isAnswering: (key) => redisWithFallback.isAnswering(key),
    useTable(policies) {
      leasing.giveBackAll()
      return redisWithFallback.local.useTable(policies)
    },
    plans: operations.plans,
    inspect: (charges) => operations.inspect(charges),
    reset: (charges) => operations.reset(charges),
    forget,
    close() {
      leasing.giveBackAll()
      watch.close()
      resetFeed.close()
      redisWithFallback.close()
    },
  }
}

/** Creates the counters in Redis, this process's knowledge of them, and the feed of resets that make it forget clients. */
function createSharedCounters(
  options: LimiterOptions & { readonly redis: RedisClient; readonly keyPrefix: string },
) {
  const { storeTimeoutMs, storeMaxKeys, now, wallNow, onForget } = options
  const overLimit = new OverLimitCache(OVER_LIMIT_CLIENTS, now, wallNow)
  const redisWithFallback: RedisWithFallback = new RedisWithFallback({
    ...options,
    timeoutMs: storeTimeoutMs,
    maxKeys: storeMaxKeys,
    overLimit,
    forgetResets: (isReached) => (isReached(resetFeed.key) ? resetFeed.catchUp() : Promise.resolve()),
  })
  const forget: CounterAdmin['forget'] = (policyName, partitionKey) => {
    overLimit.forget(policyName, partitionKey)
    redisWithFallback.forgetLocal(policyName, partitionKey)
    onForget(policyName, partitionKey)
  }
  const resetFeed: ResetFeed = new ResetFeed({
    ...options,
    isAnswering: (key) => redisWithFallback.isAnswering(key),
    onReset(partitionKey, policyName, isNew) {
      // An old reset must not remove requests counted here since.
      if (isNew) forget(policyName, partitionKey)
      else onForget(policyName, partitionKey)
    },
    missed: () => overLimit.clear(),
  })
  return { overLimit, redisWithFallback, resetFeed, forget }
}

/** The limiter of a worker without Redis: the counters are embedded in the primary process. */
export function createWorkerLimiter(port: LimiterPort, options: LimiterOptions): WorkerLimiter {
  const { storeTimeoutMs, storeMaxKeys, seed, now, wallNow, log, telemetry, onForget } = options
  const local = new MemoryLimiter({ maxKeys: storeMaxKeys, seed, now, wallNow })
  const mayLog = onceAMinute(now)
  const forget: CounterAdmin['forget'] = (policyName, partitionKey) => {
    local.forget(policyName, partitionKey)
    onForget(policyName, partitionKey)
  }
  onResetMessage(port, forget)
  const channel = new IpcLimiter({
    port,
    timeoutMs: storeTimeoutMs,
    now,
    hooks: {
      answered: (durationMs) => telemetry.storeAnswered(durationMs),
      failed(reason) {
        telemetry.storeFailed()
        if (mayLog()) log.warn({ reason }, 'primary process unavailable: applying onStoreError')
      },
      counterBroken: () => undefined,
      decideWithout: (charges, uncertain) =>
        decideWithoutStore(charges, uncertain, (localCharges) => local.decidePendingSync(localCharges)),
      refused: () => undefined,
    },
  })
  return {
    decide: (charges) => channel.decide(charges),
    settle(reservation, costUnits) {
      if (reservation.isLocal) local.settle(reservation, costUnits)
      else channel.settle(reservation, costUnits)
    },
    storeState: () => 'memory',
    useTable: (policies) => local.useTable(policies),
    forget,
    close: () => channel.close(),
  }
}

function observeMemory(telemetry: LimiterTelemetry, memory: MemoryLimiter): void {
  for (const [name, readUse] of memory.tables) telemetry.observeTable(name, readUse)
}
