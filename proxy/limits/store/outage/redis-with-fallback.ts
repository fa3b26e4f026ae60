import { randomUUID } from 'node:crypto'
import type { Log } from '../../../../shared/log.ts'
import type { Policy } from '../../../policy.ts'
import { countsInFlight } from '../../algorithms/registry.ts'
import type { Telemetry } from '../../../telemetry/telemetry.ts'
import { createCircuitBreaker } from './circuit-breaker.ts'
import type { DecisionHooks } from '../batching.ts'
import type { Charge, Decision, Limiter, Reservation } from '../../limiter.ts'
import { createMemoryLimiter, type MemoryLimiter, type PendingCharge } from '../memory/limiter.ts'
import { lacksRight } from '../redis/errors.ts'
import { createRedisLimiter, type RedisHooks, type RedisLimiter } from '../redis/limiter.ts'
import { describePolicy, keyOf } from '../redis/keys.ts'
import type { RedisClient } from '../redis/run-script.ts'
import { decideWithoutStore } from './store-fallback.ts'

export type RedisWithFallback = Limiter & {
  readonly shared: RedisLimiter
  readonly local: MemoryLimiter
  storeState(): 'available' | 'unavailable'
  /** Forgets the local counts of a client, including those pending sync with Redis. */
  forgetLocal(policyName: string | undefined, partitionKey: string): void
  close(): void
}

/** Counters and times added in one command on recovery: some milliseconds of Redis's time at most. */
const COUNTERS_IN_REPAYMENT = 500

/**
 * Counts in Redis while it is available, and applies each rule's `onStoreError` while it is not. Requests that `local` counters
 * admitted during an outage are added to Redis, exactly once, before Redis decides again. `docs/redis.md` says how far counts can
 * be off.
 *
 * @param options.keyPrefix of `keyPrefixOf`
 */
export function createRedisWithFallback(options: {
  readonly redis: RedisClient
  readonly keyPrefix: string
  readonly timeoutMs: number
  /** The most counters this process keeps while Redis is away. */
  readonly maxKeys: number
  readonly seed: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  readonly wallNow?: (() => number) | undefined
  readonly log: Log
  readonly telemetry: Pick<Telemetry, 'storeAnswered' | 'storeFailed' | 'breakerChanged'>
  readonly refused: RedisHooks['refused']
  /** Called before local counts are added to Redis: some may have to be forgotten instead, as clients were reset. */
  readonly recovering: () => Promise<void>
}): RedisWithFallback {
  const { redis, keyPrefix, timeoutMs, maxKeys, seed, now, wallNow, log, telemetry } = options
  const local = createMemoryLimiter({ maxKeys, seed, now, wallNow })
  const shared = createRedisLimiter({
    redis,
    keyPrefix,
    timeoutMs,
    now,
    wallNow,
    hooks: {
      answered(durationMs) {
        telemetry.storeAnswered(durationMs)
        breaker.succeeded()
        if (owes() && !breaker.isOpen) void repay()
      },
      failed(reason) {
        telemetry.storeFailed()
        breaker.failed(reason)
        // Only some requests need the command. Others succeed in between and would keep the circuit breaker closed.
        if (!breaker.isOpen && lacksRight(reason)) void isRefused()
      },
      counterBroken: createBrokenCounterLog(log, now, keyPrefix),
      decideWithout,
      inFlight: (charge, change) => (change === 1 ? local.addInFlight(charge) : local.removeInFlight(charge)),
      countedTwice: (charge) => local.takeBackPending(charge),
      refused: options.refused,
    },
  })
  const breaker = createCircuitBreaker({
    failuresToOpen: 3,
    retryEveryMs: 250,
    recover,
    opened(reason) {
      openedAtMs = now()
      openedFor = reason
      isRecovering = false
      telemetry.breakerChanged('open')
      log.warn({ reason }, 'Redis unavailable: circuit breaker open, applying onStoreError')
      shared.giveUp()
    },
    closed() {
      telemetry.breakerChanged('closed')
      log.info({ outageMs: Math.round(now() - openedAtMs) }, 'Redis available: circuit breaker closed')
    },
  })
  let openedAtMs = 0
  /** The reasons already logged for this outage. */
  let openedFor = ''
  /** A probe has succeeded since. Without that, a repayment that began before the outage does not end it. */
  let isRecovering = false
  /** A repayment whose command has not been confirmed. It keeps its id, so that it cannot be added twice. */
  let unconfirmed: Repayment | undefined
  let repaying: Promise<boolean> | undefined

  function decideWithout(charges: readonly Charge[], uncertain: boolean): Decision {
    return decideWithoutStore(charges, uncertain, (localCharges) =>
      withNames(local.decidePendingSync(localCharges)),
    )
  }

  /** Requests that come to be in flight now are told to Redis when it answers again, if they still are. */
  function withNames(decision: Decision): Decision {
    if (decision.outcome !== 'allowed') return decision
    const states = decision.states.map((state) =>
      state.reservation && countsInFlight(state.policy)
        ? { ...state, reservation: shared.addInFlight(state.reservation.charge) }
        : state,
    )
    return { ...decision, states }
  }

  function settle(reservation: Reservation, costUnits: number): void {
    const { isLocal, units, charge } = reservation
    const isMore = costUnits > units && !countsInFlight(charge.policy)
    if (isLocal) local.settle(reservation, costUnits)
    // The missing units are charged here, and in Redis when it answers.
    else if (isMore && breaker.isOpen) local.settle({ ...reservation, isLocal: true }, costUnits)
    else shared.settle(reservation, costUnits)
  }

  function owes(): boolean {
    return unconfirmed !== undefined || local.hasPending()
  }

  async function recover(): Promise<void> {
    if (await isRefused()) return
    if (!(await shared.probe())) return
    await options.recovering()
    await shared.renewInFlight()
    isRecovering = true
    if (!(await repay())) return
    breaker.close()
  }

  /**
   * Whether Redis refuses a command that decisions need, such as one that its ACL denies. If so, opens the circuit
   * breaker.
   */
  async function isRefused(): Promise<boolean> {
    const refusal = await shared.findRefusal()
    if (!refusal) return false
    const { command, reply } = refusal
    const reason = command === undefined ? reply : `${reply} (${command})`
    if (!breaker.isOpen) breaker.open(reason)
    else if (!openedFor.includes(reply)) {
      openedFor += reason
      log.warn({ reason }, 'Redis is connected but refuses a required command')
    }
    return true
  }

  function repay(): Promise<boolean> {
    repaying ??= repayAll().finally(() => {
      repaying = undefined
    })
    return repaying
  }

  /**
   * Adds the locally admitted requests to Redis, a part at a time. Resolves to whether everything was added. Under load
   * there is always something new to add, so the breaker closes when the last part is sent, not when it is answered:
   * later commands follow it on the same connection.
   */
  async function repayAll(): Promise<boolean> {
    while (owes()) {
      unconfirmed ??= { id: randomUUID(), charges: local.takePending(COUNTERS_IN_REPAYMENT) }
      const answer = shared.addOnce(unconfirmed.id, unconfirmed.charges)
      if (isRecovering && !local.hasPending()) breaker.close()
      const isAdded = await answer
      if (!isAdded) {
        if (!(await isRefused())) breaker.open('could not add the requests admitted during the outage')
        return false
      }
      unconfirmed = undefined
    }
    return true
  }

  // Checked on each new connection, rather than after three failed decisions.
  const onReady = (): void => void isRefused()
  redis.on('ready', onReady)
  if (redis.status === 'ready') onReady()

  return {
    shared,
    local,
    settle,
    decide: (charges) => (breaker.isOpen ? decideWithout(charges, false) : shared.decide(charges)),
    storeState: () => (!breaker.isOpen && redis.status === 'ready' ? 'available' : 'unavailable'),
    forgetLocal(policyName, partitionKey) {
      local.forget(policyName, partitionKey)
      if (!unconfirmed) return
      const charges = unconfirmed.charges.filter(
        (charge) =>
          charge.partitionKey !== partitionKey ||
          (policyName !== undefined && charge.policy.name !== policyName),
      )
      unconfirmed = { ...unconfirmed, charges }
    },
    close() {
      redis.off('ready', onReady)
      breaker.stop()
      shared.close()
    },
  }
}

type Repayment = { readonly id: string; readonly charges: readonly PendingCharge[] }

/**
 * Logs a key that does not hold a counter, once a minute for each policy. The key itself may identify a person and is
 * not logged.
 */
function createBrokenCounterLog(
  log: Log,
  now: () => number,
  keyPrefix: string,
): DecisionHooks['counterBroken'] {
  const loggedAtMs = new WeakMap<Policy, number>()
  return (policies, reason) => {
    for (const policy of policies) {
      const lastMs = loggedAtMs.get(policy)
      if (lastMs !== undefined && now() - lastMs < 60_000) continue
      loggedAtMs.set(policy, now())
      const keys = keyOf(describePolicy(policy, keyPrefix), '*')
      log.error({ policy: policy.name, keys, reason }, BROKEN_COUNTER)
    }
  }
}

const BROKEN_COUNTER = 'a Redis key matching this pattern does not hold a counter: find and delete it'
