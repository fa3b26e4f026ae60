import { pino } from 'pino'
import {
  createSharedLimiter,
  type CounterLimiter,
  type LimiterOptions,
  type LimiterTelemetry,
} from '../../../proxy/limits/store/create-limiter.ts'
import type { CounterAdmin } from '../../../proxy/limits/store/counter-admin.ts'
import type { Charge, Decision, Limiter, Reservation } from '../../../proxy/limits/limiter.ts'
import {
  connectRedis,
  type RedisConnection,
} from '../../../proxy/limits/store/redis/connecting/connection.ts'
import { parseRedisUrl } from '../../../proxy/limits/store/redis/connecting/url.ts'
import type { MemoryLimiter } from '../../../proxy/limits/store/memory/limiter.ts'
import type { Policy } from '../../../proxy/policy.ts'
import type { TableUse } from '../../../proxy/telemetry/telemetry.ts'
import type { Log } from '../../../shared/log.ts'
import { eventually } from '../wait/eventually.ts'

const monotonicNow = (): number => performance.now()

/** A policy, with defaults for everything that a test does not set. */
export function makePolicy(
  name: string,
  quota: number,
  windowMs: number,
  rest: Partial<Policy> = {},
): Policy {
  return {
    name,
    quota,
    windowMs,
    algorithm: 'fixed',
    mode: 'enforce',
    onStoreError: 'local',
    partition: [{ kind: 'ip' }],
    ...rest,
  }
}

export function chargeAll(partitionKey: string, policies: readonly Policy[]): Charge[] {
  return policies.map((policy) => ({ policy, partitionKey }))
}

/** How full a table of the limiter is; the table of fixed windows unless another is named. */
export function readTable({ tables }: Pick<MemoryLimiter, 'tables'>, name = 'counters'): TableUse {
  const read = tables.get(name)
  if (!read) throw new RangeError(`no table ${name}`)
  return read()
}

let lastClient = 0

/** A client that no other test uses. */
export function newClient(): string {
  lastClient += 1
  return `ip:192.0.2.${lastClient}`
}

/** Asks the given limiters in turn, `times` times at once, and waits for all answers. */
export async function decideAtOnce(
  limiters: readonly Limiter[],
  times: number,
  charges: readonly Charge[],
): Promise<Decision[]> {
  const answers: Promise<Decision>[] = []
  for (let asked = 0; asked < times; asked++) {
    const limiter = limiters[asked % limiters.length]
    if (limiter) answers.push(Promise.resolve(limiter.decide(charges)))
  }
  return Promise.all(answers)
}

/** Asks for all the clients in the same turn of the event loop, and waits for all answers. */
export function decideForEach(
  limiter: Limiter,
  clients: readonly string[],
  policies: readonly Policy[],
): Promise<Decision[]> {
  return Promise.all(clients.map(async (client) => limiter.decide(chargeAll(client, policies))))
}

export function countAllowed(decisions: readonly Decision[]): number {
  return decisions.filter(({ outcome }) => outcome === 'allowed').length
}

export function reservationsOf(decision: Decision | undefined): Reservation[] {
  if (decision?.outcome !== 'allowed') return []
  return decision.states.flatMap(({ reservation }) => (reservation ? [reservation] : []))
}

export type LogLine = { readonly level: number; readonly msg: string; readonly reason?: string }

/** A log that keeps its lines for the test to read. */
export function recordLog(): { readonly log: Log; readonly lines: LogLine[] } {
  const lines: LogLine[] = []
  const log = pino(
    { level: 'info' },
    { write: (line: string) => void lines.push(JSON.parse(line) as LogLine) },
  )
  return { log, lines }
}

export type RecordedTelemetry = LimiterTelemetry & {
  answers: number
  failures: number
  evicted: number
  readonly breaker: ('closed' | 'open')[]
  /** The node of each change in `breaker`. */
  readonly breakerNodes: string[]
}

export function recordTelemetry(): RecordedTelemetry {
  const recorded: RecordedTelemetry = {
    answers: 0,
    failures: 0,
    evicted: 0,
    breaker: [],
    breakerNodes: [],
    storeAnswered: () => void (recorded.answers += 1),
    storeFailed: () => void (recorded.failures += 1),
    breakerChanged(state, node) {
      recorded.breaker.push(state)
      recorded.breakerNodes.push(node)
    },
    storeEvicted: (keys) => void (recorded.evicted = keys),
    leaseChanged: () => undefined,
    observeTable: () => undefined,
  }
  return recorded
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
