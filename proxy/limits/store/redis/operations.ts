import type { Log } from '../../../../shared/log.ts'
import { within } from '../../../../shared/within.ts'
import type { CounterReading } from '../../algorithms/memory-counts.ts'
import { toState, type CounterAdmin, type CounterState } from '../counter-admin.ts'
import type { OverLimitCache } from '../over-limit-cache.ts'
import type { RedisWithFallback } from '../outage/redis-with-fallback.ts'
import type { Charge } from '../../limiter.ts'
import { planKeyName } from '../../../policy/plan-key-name.ts'
import { readsStoredPlan } from '../../../policy/plans.ts'
import { withStoredPlan } from '../../plans/stored-plans.ts'
import { countsInFlight, lendsUnits } from '../../algorithms/registry.ts'
import { createDescriber, keyOf, leasedKeyOf } from './keys.ts'
import type { ResetFeed } from './feeds/reset-feed.ts'
import { reasonOf } from './errors.ts'
import { createRedisPlans } from './plans.ts'
import { runScript, type RedisClient } from './run-script.ts'
import { PolicyArguments } from './scripts/policy-arguments.ts'
import { resetLeasedScript } from './scripts/lease.ts'
import { readScript } from './scripts/read.ts'

/**
 * How long an operator's question to Redis may take, who can wait longer than a request.
 *
 * @param storeTimeoutMs for a request
 */
export function operatorTimeoutMs(storeTimeoutMs: number): number {
  return Math.max(500, storeTimeoutMs)
}

/** Counters in one command: a few hundred microseconds of Redis's time. */
const COUNTERS_IN_COMMAND = 256

/**
 * Inspects and resets counters in Redis for operators.
 *
 * @param options.keyPrefix of `keyPrefixOf`
 * @param options.timeoutMs of `operatorTimeoutMs`
 */
export function createRedisOperations(options: {
  readonly redis: RedisClient
  readonly keyPrefix: string
  readonly timeoutMs: number
  readonly wallNow?: (() => number) | undefined
  readonly redisWithFallback: RedisWithFallback
  readonly overLimit: OverLimitCache
  readonly resetFeed: Pick<ResetFeed, 'announce' | 'key'>
  readonly forget: CounterAdmin['forget']
  readonly log: Log
}): CounterAdmin {
  const { redis, redisWithFallback, overLimit, resetFeed, forget, log, timeoutMs } = options
  const describe = createDescriber(options.keyPrefix, options.wallNow)

  function counterKey({ policy, partitionKey }: Charge): string {
    return keyOf(describe(policy), partitionKey)
  }

  const isAnswering = (key: string): boolean => redisWithFallback.isAnswering(key)
  const isCounterAnswering = (charge: Charge): boolean => isAnswering(counterKey(charge))

  const plans = createRedisPlans({
    ...options,
    isAnswering,
    areAllAnswering: () => redisWithFallback.storeState() === 'available',
  })

  /** The charge with the plan of its client; without Redis that has none. */
  async function withPlanOf(charge: Charge): Promise<Charge> {
    if (!readsStoredPlan(charge.policy)) return charge
    const read = await plans.get({ partitionKey: charge.partitionKey, keyName: planKeyName(charge.policy) })
    return read === 'unavailable' ? charge : withStoredPlan(charge, read.plan)
  }

  async function resetPart(charges: readonly Charge[]): Promise<void> {
    const policies = new PolicyArguments()
    const keys: string[] = []
    const numbers: string[] = []
    const others: string[] = []
    for (const { policy, partitionKey } of charges) {
      const described = describe(policy)
      if (lendsUnits(described.algorithm)) {
        keys.push(keyOf(described, partitionKey), leasedKeyOf(described, partitionKey))
        numbers.push(policies.numberOf(described))
      } else others.push(keyOf(described, partitionKey))
    }
    const args = [...keys, ...policies.toArguments(), ...numbers]
    await Promise.all([
      keys.length > 0 && runScript(redis, resetLeasedScript, keys.length, args),
      others.length > 0 && redis.del(others),
    ])
  }

  async function readPart(asked: readonly Charge[]): Promise<(readonly [Charge, CounterState])[]> {
    const states = await read(asked)
    return states.flatMap((state, i) => (asked[i] ? [[asked[i], state] as const] : []))
  }

  async function read(asked: readonly Charge[]): Promise<CounterState[]> {
    const charges = await Promise.all(asked.map(withPlanOf))
    const policies = new PolicyArguments()
    const numbers = charges.map(({ policy }) => policies.numberOf(describe(policy)))
    const keys = charges.map(counterKey)
    const args = [...keys, ...policies.toArguments(), ...numbers]
    const reply = await runScript(redis, readScript, keys.length, args)
    if (!Array.isArray(reply)) throw new TypeError('unexpected reply from Redis: not an array')
    const values = reply as readonly unknown[]
    return charges.map((charge, i) => {
      const used = values[2 * i]
      // The key does not hold a counter: decisions about it are made locally too.
      if (typeof used !== 'number') return readLocally(charge)
      const state = toState(charge.policy, 'store', toReading(used, Number(values[2 * i + 1]) / 1000))
      // Where Redis has lost its counter, the client is refused on all the same.
      return (state.used ?? 0) < charge.policy.quota ? (knownOverLimit(charge) ?? state) : state
    })
  }

  /** A client that this process refuses without asking Redis. */
  function knownOverLimit(charge: Charge): CounterState | undefined {
    const { policy } = charge
    const resetMs = overLimit.findOverLimit(charge)
    return resetMs === undefined ? undefined : { policy, source: 'local', used: policy.quota, resetMs }
  }

  function readLocally(charge: Charge): CounterState {
    const { policy } = charge
    const known = knownOverLimit(charge)
    if (known) return known
    if (policy.onStoreError === 'local') return toState(policy, 'local', redisWithFallback.local.read(charge))
    return { policy, source: 'none', used: undefined, resetMs: undefined }
  }

  return {
    plans,
    async inspect(charges) {
      const answering = charges.filter(isCounterAnswering)
      try {
        const read = await within(timeoutMs, Promise.all(inCommands(answering).map(readPart)))
        const states = new Map(read.flat())
        return charges.map((charge) => states.get(charge) ?? readLocally(charge))
      } catch (error) {
        log.warn({ reason: reasonOf(error) }, 'cannot read counters from Redis')
        return charges.map(readLocally)
      }
    },

    async reset(charges) {
      if (!isAnswering(resetFeed.key) || !charges.every(isCounterAnswering)) return 'unavailable'
      try {
        // Counters are deleted before other processes forget what they have cached, as otherwise they would cache it
        // again.
        await within(
          timeoutMs,
          Promise.all(inCommands(charges.filter(isCounted)).map(resetPart)).then(() =>
            resetFeed.announce(charges),
          ),
        )
        return 'done'
      } catch (error) {
        log.error({ reason: reasonOf(error) }, 'Redis did not confirm a client reset')
        return 'uncertain'
      } finally {
        for (const { policy, partitionKey } of charges) forget(policy.name, partitionKey)
      }
    },

    forget,
  }
}

/** A reset does not end requests in flight: they are still counted. */
function isCounted({ policy }: Charge): boolean {
  return !countsInFlight(policy)
}

/** The counters of each command are of one client, and so on one node. */
function inCommands(charges: readonly Charge[]): Charge[][] {
  const commands: Charge[][] = []
  for (const part of Map.groupBy(charges, ({ partitionKey }) => partitionKey).values()) {
    for (let at = 0; at < part.length; at += COUNTERS_IN_COMMAND)
      commands.push(part.slice(at, at + COUNTERS_IN_COMMAND))
  }
  return commands
}

function toReading(used: number, resetMs: number): CounterReading {
  return resetMs > 0 ? { used, resetMs } : undefined
}
