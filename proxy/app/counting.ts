import { randomInt } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { Log } from '../../shared/log.ts'
import type { Running } from '../../shared/shutdown.ts'
import { doInTurns } from '../../shared/steps.ts'
import type { StoreState } from '../admin/health.ts'
import {
  createClientTable,
  type ClientTable,
  type ClientTableOptions,
  type SharedBy,
} from '../limits/clients/client-table.ts'
import type { GatewaySettings } from '../config/settings.ts'
import type { ThrottledClients } from '../limits/clients/throttled-clients.ts'
import type { CounterAdmin } from '../limits/store/counter-admin.ts'
import {
  createEmbeddedLimiter,
  createSharedLimiter,
  type CounterLimiter,
  type LimiterOptions,
} from '../limits/store/create-limiter.ts'
import type { Limiter } from '../limits/limiter.ts'
import type { RedisConnection } from '../limits/store/redis/connecting/connection.ts'
import { keyPrefixOf } from '../limits/store/redis/keys.ts'
import { operatorTimeoutMs } from '../limits/store/redis/operations.ts'
import { parseRedisUrl } from '../limits/store/redis/connecting/url.ts'
import { policiesOf, type Rule } from '../policy.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Notify } from '../telemetry/webhooks/webhook-event.ts'
import { createCredentials } from './redis-credentials.ts'
import { notifyOfBans, notifyOfBreaker } from './observe/webhooks.ts'

/** A limiter and its store. */
export type Counting = Running & {
  readonly limiter: Limiter
  /** The wall clock of calendar windows. Default: the machine's. */
  readonly wallNow?: () => number
  readonly storeState: () => StoreState
  /** The nodes of a Redis cluster that do not answer. */
  readonly unavailableNodes?: (() => readonly string[]) | undefined
  /** The operations for operators. If another process counts, they have no effect here: ask that process. */
  readonly operations: Pick<CounterAdmin, 'inspect' | 'reset' | 'plans'>
  readonly clientTable: ClientTable
  /** The Redis that replicas share. */
  readonly shared?: SharedBy | undefined
  /** Called when other rules take effect. Resolves when the state of the old rules is freed. */
  useRules(rules: readonly Rule[]): Promise<void>
  /** Resolves when the store is connected, or after a short wait. */
  ready(): Promise<void>
}

/** How long the start waits for Redis, so that the first requests are counted there. After that, the gateway serves without Redis. */
const CONNECT_AT_START_MS = 1_000

export const now: () => number = performance.now.bind(performance)

/** The dependencies of counters. */
export type CountingDeps = {
  readonly log: Log
  readonly telemetry: Telemetry
  /** Called when an operator has reset a client. */
  readonly onForget: ThrottledClients['forget']
  /** Sends events about bans and circuit breakers to webhooks. */
  readonly notify: Notify | undefined
}

/**
 * Creates the counters: in Redis, or in this process without Redis.
 *
 * @param nowMs monotonic milliseconds, for counters in this process and the cached state of clients
 */
export async function composeCounting(
  settings: GatewaySettings,
  deps: CountingDeps,
  nowMs = now,
): Promise<Counting> {
  const { log, telemetry, notify } = deps
  const redis = await composeRedis(settings, log)
  const wallNow = nowMs === now ? Date.now : wallClockOf(nowMs)
  const options: LimiterOptions = {
    ...counterOptions(settings, { ...deps, telemetry: notifyOfBreaker(telemetry, notify) }),
    now: nowMs,
    wallNow,
  }
  const limiter: CounterLimiter = redis
    ? createSharedLimiter(redis.client, options)
    : createEmbeddedLimiter(options)
  const shared = redis && {
    redis: redis.client,
    keyPrefix: keyPrefixOf(settings.namespace),
    isAnswering: (key: string) => limiter.isAnswering?.(key) ?? false,
    timeoutMs: operatorTimeoutMs(settings.storeTimeoutMs),
  }
  const clientTable = createClientTable(
    { ...clientTableOptions(settings, deps), now: nowMs, wallNow },
    shared,
  )
  return {
    limiter,
    wallNow,
    operations: limiter,
    clientTable,
    shared,
    storeState: () => limiter.storeState(),
    unavailableNodes: () => limiter.unavailableNodes?.() ?? [],
    async useRules(rules) {
      await doInTurns(limiter.useTable(policiesOf(rules)))
      await setImmediate()
      clientTable.usePolicies(rules.map(({ policy }) => policy))
    },
    async ready() {
      await redis?.connected(CONNECT_AT_START_MS)
      await clientTable.ready()
    },
    close() {
      clientTable.close()
      limiter.close()
      redis?.close()
      return Promise.resolve()
    },
  }
}

/** Returns a wall clock that advances with another clock. */
function wallClockOf(nowMs: () => number): () => number {
  const differenceMs = Date.now() - nowMs()
  return () => Math.floor(nowMs() + differenceMs)
}

async function composeRedis(settings: GatewaySettings, log: Log): Promise<RedisConnection | undefined> {
  const { redisUrl } = settings
  if (redisUrl === undefined) return undefined
  // The Redis client consists of a hundred modules; a gateway without Redis does not load them.
  const { connectRedis } = await import('../limits/store/redis/connecting/connection.ts')
  const address = parseRedisUrl(redisUrl)
  return connectRedis(address, log, createCredentials(settings, address, log))
}

/** The options that all kinds of client tables have in common. */
export function clientTableOptions(
  settings: GatewaySettings,
  { log, telemetry, notify }: Pick<CountingDeps, 'log' | 'telemetry' | 'notify'>,
): ClientTableOptions {
  const policies = settings.rateLimitingDisabled ? [] : settings.rules.map(({ policy }) => policy)
  const { logAddresses } = settings
  return { policies, now, telemetry, logAddresses, onBan: notifyOfBans(notify), log }
}

/** The options that all kinds of limiters have in common. */
export function counterOptions(
  settings: GatewaySettings,
  { log, telemetry, onForget }: Pick<CountingDeps, 'log' | 'telemetry' | 'onForget'>,
): LimiterOptions {
  const { storeTimeoutMs, namespace, storeMaxKeys } = settings
  return { storeTimeoutMs, namespace, storeMaxKeys, seed: randomInt(2 ** 31), now, log, telemetry, onForget }
}
