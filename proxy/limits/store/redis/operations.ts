import type { Log } from '../../../../shared/log.ts'
import { within } from '../../../../shared/within.ts'
import type { CounterReading } from '../../algorithms/memory-counts.ts'
import { toState, type CounterAdmin, type CounterState, type ResetOutcome } from '../counter-admin.ts'
import type { OverLimitCache } from '../over-limit-cache.ts'
import type { RedisWithFallback } from '../outage/redis-with-fallback.ts'
import type { Charge } from '../../limiter.ts'
import type { Policy } from '../../../policy.ts'
import { planKeyName } from '../../plans/plan-key-name.ts'
import { readsStoredPlan } from '../../../policy/plans.ts'
import type { PlanStore } from '../../plans/plan-store.ts'
import { withStoredPlan } from '../../plans/stored-plans.ts'
import { countsInFlight, lendsUnits } from '../../algorithms/registry.ts'
import { createDescriber, keyOf, leasedKeyOf, type RedisPolicy } from './keys.ts'
import type { ResetFeed } from './feeds/reset-feed.ts'
import { reasonOf } from './errors.ts'
import { RedisPlans } from './plans.ts'
import { runScript, type RedisClient } from './run-script.ts'
import { PolicyArguments } from './scripts/policy-arguments.ts'
import { resetLeasedScript } from './scripts/lease.ts'
import { readScript } from './scripts/read.ts'

/**
 * Returns how long Redis may take to answer an operator, who can wait longer than a request.
 *
 * @param storeTimeoutMs the timeout for a request
 */
export function operatorTimeoutMs(storeTimeoutMs: number): number {
  return Math.max(500, storeTimeoutMs)
}

/** The maximum number of counters in one command, which takes a few hundred microseconds of Redis's time. */
const COUNTERS_IN_COMMAND = 256

export type RedisOperationsOptions = {
  readonly redis: RedisClient
  /** The prefix of keys in Redis (`keyPrefixOf`). */
  readonly keyPrefix: string
  /** The result of `operatorTimeoutMs`. */
  readonly timeoutMs: number
  /** The time of day, in milliseconds since 1970. */
  readonly wallNow?: (() => number) | undefined
  readonly redisWithFallback: RedisWithFallback
  readonly overLimit: OverLimitCache
  readonly resetFeed: Pick<ResetFeed, 'announce' | 'key'>
  readonly forget: CounterAdmin['forget']
  readonly log: Log
}

/** Inspects and resets counters in Redis for operators. */
export class RedisOperations implements Omit<CounterAdmin, 'forget'> {
  readonly plans: PlanStore
  readonly #options: RedisOperationsOptions
  readonly #describe: (policy: Policy) => RedisPolicy

  constructor(options: RedisOperationsOptions) {
    const { keyPrefix, wallNow, redisWithFallback } = options
    this.#options = options
    this.#describe = createDescriber(keyPrefix, wallNow)
    this.plans = new RedisPlans({
      ...options,
      isAnswering: (key) => redisWithFallback.isAnswering(key),
      areAllAnswering: () => redisWithFallback.storeState() === 'available',
    })
  }

  async inspect(charges: readonly Charge[]): Promise<CounterState[]> {
    const { timeoutMs, log } = this.#options
    const answering = charges.filter((charge) => this.#isAnswering(charge))
    try {
      const parts = inCommands(answering).map((part) => this.#readPart(part))
      const states = new Map((await within(timeoutMs, Promise.all(parts))).flat())
      return charges.map((charge) => states.get(charge) ?? this.#readLocally(charge))
    } catch (error) {
      log.warn({ reason: reasonOf(error) }, 'cannot read counters from Redis')
      return charges.map((charge) => this.#readLocally(charge))
    }
  }

  async reset(charges: readonly Charge[]): Promise<ResetOutcome> {
    const { redisWithFallback, resetFeed, timeoutMs, forget, log } = this.#options
    const areAnswering = charges.every((charge) => this.#isAnswering(charge))
    if (!areAnswering || !redisWithFallback.isAnswering(resetFeed.key)) return 'unavailable'
    try {
      await within(timeoutMs, this.#deleteAndAnnounce(charges))
      return 'done'
    } catch (error) {
      log.error({ reason: reasonOf(error) }, 'Redis did not confirm the reset of a client')
      return 'uncertain'
    } finally {
      for (const { policy, partitionKey } of charges) forget(policy.name, partitionKey)
    }
  }

  /** Deletes counters before other processes forget what they have cached, because they would cache it again otherwise. */
  async #deleteAndAnnounce(charges: readonly Charge[]): Promise<void> {
    await Promise.all(inCommands(charges.filter(isCounted)).map((part) => this.#resetPart(part)))
    await this.#options.resetFeed.announce(charges)
  }

  async #resetPart(charges: readonly Charge[]): Promise<void> {
    const { redis } = this.#options
    const policies = new PolicyArguments()
    const keys: string[] = []
    const numbers: string[] = []
    const others: string[] = []
    for (const { policy, partitionKey } of charges) {
      const described = this.#describe(policy)
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

  async #readPart(asked: readonly Charge[]): Promise<(readonly [Charge, CounterState])[]> {
    const states = await this.#read(asked)
    return states.flatMap((state, i) => (asked[i] ? [[asked[i], state] as const] : []))
  }

  async #read(asked: readonly Charge[]): Promise<CounterState[]> {
    const charges = await Promise.all(asked.map((charge) => this.#withPlanOf(charge)))
    const policies = new PolicyArguments()
    const numbers = charges.map(({ policy }) => policies.numberOf(this.#describe(policy)))
    const keys = charges.map((charge) => this.#counterKey(charge))
    const args = [...keys, ...policies.toArguments(), ...numbers]
    const reply = await runScript(this.#options.redis, readScript, keys.length, args)
    if (!Array.isArray(reply)) throw new TypeError('unexpected reply from Redis: not an array')
    const values = reply as readonly unknown[]
    return charges.map((charge, i) => this.#stateOf(charge, values[2 * i], values[2 * i + 1]))
  }

  /**
   * @param used from the reply of `readScript`: not a number if the key does not hold a counter
   * @param resetUs microseconds
   */
  #stateOf(charge: Charge, used: unknown, resetUs: unknown): CounterState {
    // Decisions about a broken counter are made locally too.
    if (typeof used !== 'number') return this.#readLocally(charge)
    const state = toState(charge.policy, 'store', toReading(used, Number(resetUs) / 1000))
    // Even if Redis has lost its counter, the client is still refused.
    return (state.used ?? 0) < charge.policy.quota ? (this.#knownOverLimit(charge) ?? state) : state
  }

  /** Returns the charge with the plan of its client, or without a plan if Redis does not answer. */
  async #withPlanOf(charge: Charge): Promise<Charge> {
    const { policy, partitionKey } = charge
    if (!readsStoredPlan(policy)) return charge
    const read = await this.plans.get({ partitionKey, keyName: planKeyName(policy) })
    return read === 'unavailable' ? charge : withStoredPlan(charge, read.plan)
  }

  #readLocally(charge: Charge): CounterState {
    const { policy } = charge
    const known = this.#knownOverLimit(charge)
    if (known) return known
    if (policy.onStoreError === 'local')
      return toState(policy, 'local', this.#options.redisWithFallback.local.read(charge))
    return { policy, source: 'none', used: undefined, resetMs: undefined }
  }

  /** Returns the state of a client that this process refuses without asking Redis; undefined for any other client. */
  #knownOverLimit(charge: Charge): CounterState | undefined {
    const { policy } = charge
    const resetMs = this.#options.overLimit.findOverLimit(charge)
    return resetMs === undefined ? undefined : { policy, source: 'local', used: policy.quota, resetMs }
  }

  #isAnswering(charge: Charge): boolean {
    return this.#options.redisWithFallback.isAnswering(this.#counterKey(charge))
  }

  #counterKey({ policy, partitionKey }: Charge): string {
    return keyOf(this.#describe(policy), partitionKey)
  }
}

/** A reset does not end requests in flight: they are still counted. */
function isCounted({ policy }: Charge): boolean {
  return !countsInFlight(policy)
}

/** Splits charges into commands. The counters of each command belong to one client, so they are on one node. */
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
