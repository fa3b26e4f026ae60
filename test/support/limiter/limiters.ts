import {
  createSharedLimiter,
  type CounterLimiter,
  type LimiterOptions,
} from '../../../proxy/limits/store/create-limiter.ts'
import type { CounterAdmin } from '../../../proxy/limits/store/counter-admin.ts'
import {
  connectRedis,
  type RedisConnection,
} from '../../../proxy/limits/store/redis/connecting/connection.ts'
import { parseRedisUrl } from '../../../proxy/limits/store/redis/connecting/url.ts'
import type { MemoryLimiter } from '../../../proxy/limits/store/memory/limiter.ts'
import type { TableUse } from '../../../proxy/telemetry/telemetry.ts'
import { eventually } from '../wait/eventually.ts'
import { recordLog, recordTelemetry, type LogLine, type RecordedTelemetry } from './recordings.ts'

const monotonicNow = (): number => performance.now()

/** How full a table of the limiter is; the table of fixed windows unless another is named. */
export function readTable({ tables }: Pick<MemoryLimiter, 'tables'>, name = 'counters'): TableUse {
  const read = tables.get(name)
  if (!read) throw new RangeError(`no table ${name}`)
  return read()
}

export function limiterOptions(given: Partial<LimiterOptions> = {}): LimiterOptions {
  return {
    storeTimeoutMs: ampleTimeoutMs,
    namespace: undefined,
    storeMaxKeys: 10_000,
    seed: 1,
    now: monotonicNow,
    log: recordLog().log,
    telemetry: recordTelemetry(),
    onForget: () => undefined,
    ...given,
  }
}

export type RunningLimiter = CounterLimiter & {
  readonly connection: RedisConnection
  readonly logLines: readonly LogLine[]
  readonly telemetry: RecordedTelemetry
}

/** A Redis timeout that is long enough for a busy machine, for tests that are not about the timeout. */
export const ampleTimeoutMs = 5_000

/** One replica's limiter on Redis, with a connection of its own. `close` ends both. */
export function startRedisLimiter(
  url: string,
  storeTimeoutMs = ampleTimeoutMs,
  namespace?: string,
): RunningLimiter {
  const { log, lines } = recordLog()
  const telemetry = recordTelemetry()
  const connection = connectRedis(parseRedisUrl(url), log)
  const options = limiterOptions({ storeTimeoutMs, namespace, log, telemetry })
  const limiter = createSharedLimiter(connection.client, options)
  return {
    ...limiter,
    connection,
    logLines: lines,
    telemetry,
    close() {
      limiter.close()
      connection.close()
    },
  }
}

export function waitUntilAnswering(limiter: CounterLimiter): Promise<void> {
  return eventually('Redis answers', () => limiter.storeState() === 'available')
}

/** Replicas on one Redis, each with everything that a gateway has: connection, breaker, known over-limit clients. */
export async function startReplicas(
  url: string,
  count: number,
): Promise<{
  readonly limiters: readonly RunningLimiter[]
  readonly operations: CounterAdmin
  readonly close: () => void
}> {
  const limiters = Array.from({ length: count }, () => startRedisLimiter(url))
  await Promise.all(limiters.map(waitUntilAnswering))
  const [operations] = limiters
  if (!operations) throw new RangeError('at least one replica')
  return { limiters, operations, close: () => limiters.forEach((limiter) => limiter.close()) }
}
