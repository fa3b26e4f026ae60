import { isReserved, reservedUnits, takesUnits, type Policy } from '../../policy.ts'
import { askAcrossSlots, type Counted } from './cross-slot.ts'
import { createBatching, type Batching, type DecisionHooks } from '../batching.ts'
import type { Charge, Reservation } from '../limiter.ts'
import { hasCountedNothing } from './errors.ts'
import { describePolicy, keyOf, type RedisPolicy } from './keys.ts'
import { commandsNeeded, findRefusalAt, type Refusal } from './rights.ts'
import { runScript, type RedisClient, type RedisScript } from './run-script.ts'
import { decideScript, giveBackScript } from './scripts.ts'
import { createRepayment, type AddOnce } from './settling/repayment.ts'
import { settleScript } from './settling/settle-scripts.ts'
import { createSettling } from './settling/settling.ts'
import { createLeases } from './settling/leases.ts'

export type RedisLimiter = Batching & {
  /** As `Limiter`, for what Redis has counted. */
  settle(reservation: Reservation, costUnits: number): void
  /** Counts a request in flight that was let through without Redis, as soon as Redis answers. */
  addInFlight(charge: Charge): Reservation
  /** Tells Redis of all requests in flight. */
  renewInFlight(): Promise<void>
  close(): void
  /** Whether Redis decides a test request in time; in a cluster, whether every master does. */
  probe(): Promise<boolean>
  /** The error of Redis if it refuses a command that decisions need; undefined also if it does not answer. */
  findRefusal(): Promise<Refusal | undefined>
  readonly addOnce: AddOnce
}

/** Redis decides this many in less than half a millisecond, during which its other clients wait. */
const CHARGES_IN_COMMAND = 256

/** Enough that every master of a usual cluster has one: with 3 masters, all but once in 10^5 tries. */
const CLUSTER_PROBES = 32

const ADD_TIMEOUT_MS = 1000

/** In a cluster, a refusal can be due to a count that is about to be given back: it is cached for this long only. */
const UNSETTLED_FOR_MS = 250

export type RedisHooks = Omit<DecisionHooks, 'refused' | 'reserved'> & {
  /** Redis has let a request through that is now in flight (1), or such a request is over (-1). */
  inFlight?(charge: Charge, change: 1 | -1): void
  /** As in `DecisionHooks`. The refusal may be cached until the window ends, but for no longer than `knownForMs`. */
  refused(...refusal: [...Parameters<DecisionHooks['refused']>, knownForMs: number]): void
}

/**
 * Counts in Redis. The requests of one turn of the event loop are sent in one command, which decides each of them
 * atomically with all its charges. In a cluster each request is a command of its own, because a command reaches one
 * node only.
 *
 * @param options.keyPrefix of `keyPrefixOf`
 * @param options.timeoutMs after which a decision is made without Redis
 * @param options.now milliseconds of a monotonic clock
 */
export function createRedisLimiter(options: {
  readonly redis: RedisClient
  readonly keyPrefix: string
  readonly timeoutMs: number
  readonly now: () => number
  readonly hooks: RedisHooks
}): RedisLimiter {
  const { redis, keyPrefix, timeoutMs, now, hooks } = options
  /** The counters that probes use. They expire after a second, and no client's counter has such a key or prefix. */
  const probeKeys = redis.isCluster
    ? Array.from({ length: CLUSTER_PROBES }, (_, i) => `${keyPrefix}:probe:${i}`)
    : [`${keyPrefix}:probe`]
  const described = new Map<Policy, RedisPolicy>()
  let hasSliding = false
  let hasInFlight = false
  let hasBuckets = false
  let hasReserved = false
  /** Policies whose counters may include a request that another node refused, until it is given back. */
  const unsettled = new Set<Policy>()

  function describe(policy: Policy): RedisPolicy {
    const known = described.get(policy)
    if (known) return known
    const description = describePolicy(policy, keyPrefix)
    described.set(policy, description)
    hasSliding ||= policy.algorithm === 'sliding'
    hasInFlight ||= policy.algorithm === 'concurrency'
    hasBuckets ||= policy.algorithm === 'token-bucket'
    hasReserved ||= isReserved(policy) || policy.cost !== undefined
    return description
  }

  function giveBack({ charge, leftMs, countedAt, ticket }: Counted): Promise<unknown> {
    const { policy, partitionKey } = charge
    const description = describe(policy)
    const key = keyOf(description, partitionKey)
    if (takesUnits(policy)) {
      const units = String(charge.units ?? reservedUnits(policy))
      const { algorithm, window, unit } = description
      const length = algorithm === 'T' ? unit : window
      return runScript(redis, settleScript, 1, [key, algorithm, String(ticket), units, length])
    }
    return policy.algorithm === 'fixed'
      ? runScript(redis, giveBackScript, 1, [key, String(leftMs)])
      : redis.lrem(key, -1, String(countedAt))
  }

  async function ask(
    requests: readonly (readonly Charge[])[],
    isAwaited: () => boolean,
  ): Promise<readonly unknown[]> {
    const keys: string[] = []
    const parameters: string[] = []
    const extra: string[] = []
    let modes = ''
    let algorithms = ''
    for (const charges of requests) {
      let isFirst = true
      for (const { policy, partitionKey, units } of charges) {
        const description = describe(policy)
        keys.push(keyOf(description, partitionKey))
        parameters.push(description.quota, description.window)
        if (description.algorithm === 'C') extra.push(leases.nextName())
        else if (takesUnits(policy)) extra.push(String(units ?? reservedUnits(policy)))
        modes += isFirst ? description.modeFirst : description.modeJoined
        algorithms += description.algorithm
        isFirst = false
      }
    }
    const reply = await runScript(
      redis,
      decideScript,
      keys.length,
      [...keys, ...parameters, modes, algorithms, ...extra],
      isAwaited,
    )
    if (!Array.isArray(reply)) throw new TypeError('unexpected reply from Redis: not an array')
    return /[st]/i.test(algorithms) ? inMilliseconds(reply, algorithms) : (reply as readonly unknown[])
  }

  const keyOfCharge = ({ policy, partitionKey }: Charge): string => keyOf(describe(policy), partitionKey)
  const leases = createLeases({
    redis,
    keyOf: keyOfCharge,
    isAnswering: () => redis.status === 'ready',
  })
  const settling = createSettling({
    redis,
    describe: ({ charge }) => describe(charge.policy),
    keyOf: ({ charge }) => keyOfCharge(charge),
  })

  function settle(reservation: Reservation, costUnits: number): void {
    const { charge, units, ticket } = reservation
    if (charge.policy.algorithm === 'concurrency') {
      if (leases.remove(String(ticket))) hooks.inFlight?.(charge, -1)
      settling.settle(reservation, units)
    } else if (units !== costUnits) settling.settle(reservation, units - costUnits)
  }

  function unsettle(charges: readonly Charge[]): void {
    for (const { policy } of charges) unsettled.add(policy)
  }

  /**
   * Whether Redis runs the script without an error, in time. It is sent as text: sent as a digest that Redis does not
   * know, it would be sent again, behind later commands.
   */
  async function runs(
    script: RedisScript,
    keyCount: number,
    args: string[],
    limitMs: number,
  ): Promise<boolean> {
    if (redis.status !== 'ready') return false
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('no answer in time')), limitMs)
    })
    try {
      const reply: unknown = await Promise.race([redis.eval(script.source, keyCount, args), timeout])
      if (!Array.isArray(reply) || typeof reply[0] === 'number') return true
      leaveReplica(String(reply[0]))
      return false
    } catch {
      return false
    } finally {
      clearTimeout(timer)
    }
  }

  /** A master that became a replica refuses inside the script, where `reconnectOnError` does not see the error. */
  function leaveReplica(reason: string): void {
    if (reason.startsWith('READONLY')) redis.disconnect(true)
  }

  async function probe(): Promise<boolean> {
    const answers = probeKeys.flatMap((key) => {
      const decides = (counter: string, algorithm: string): Promise<boolean> =>
        runs(decideScript, 1, [counter, '1000000', '1000', 'E', algorithm], timeoutMs)
      return hasSliding ? [decides(key, 'f'), decides(`${key}:sliding`, 's')] : [decides(key, 'f')]
    })
    return !(await Promise.all(answers)).includes(false)
  }

  async function findRefusal(): Promise<Refusal | undefined> {
    if (redis.status !== 'ready') return undefined
    const refusal = await findRefusalAt(redis, probeKeys, {
      commands: commandsNeeded({
        sliding: hasSliding,
        reserved: hasReserved,
        inFlight: hasInFlight,
        buckets: hasBuckets,
        cluster: redis.isCluster,
      }),
      timeoutMs,
    })
    if (refusal) leaveReplica(refusal.reply)
    return refusal
  }

  const batching = createBatching({
    counters: {
      batchSize: redis.isCluster ? 1 : CHARGES_IN_COMMAND,
      isConnected: () => redis.status === 'ready',
      ask: redis.isCluster
        ? ([charges = []], isAwaited) =>
            askAcrossSlots(charges, { askNode: (part) => ask([part], isAwaited), giveBack, split: unsettle })
        : ask,
      letGo: (reservation) => settling.settle(reservation, reservation.units),
      hasCountedNothing,
    },
    timeoutMs,
    now,
    hooks: {
      ...hooks,
      reserved(reservation) {
        const { charge, ticket } = reservation
        if (charge.policy.algorithm !== 'concurrency') return
        leases.add(String(ticket), charge)
        hooks.inFlight?.(charge, 1)
      },
      refused(charges, refusal, askedAtMs) {
        const knownForMs = unsettled.has(refusal.refusedBy) ? UNSETTLED_FOR_MS : Infinity
        hooks.refused(charges, refusal, askedAtMs, knownForMs)
      },
      failed(reason) {
        hooks.failed(reason)
        leaveReplica(reason)
      },
    },
  })

  return {
    ...batching,
    settle,
    addInFlight(charge) {
      const name = leases.nextName()
      leases.add(name, charge)
      return { charge, units: 1, isLocal: false, ticket: name }
    },
    renewInFlight: () => leases.renew(),
    close() {
      batching.giveUp()
      leases.close()
    },
    probe,
    findRefusal,
    addOnce: createRepayment({
      redis,
      keyPrefix,
      describe,
      now,
      runs: (script, keyCount, args) => runs(script, keyCount, args, ADD_TIMEOUT_MS),
    }),
  }
}

/** Converts the times of sliding windows and buckets in a reply of `decideScript` from microseconds to milliseconds. */
function inMilliseconds(reply: readonly unknown[], algorithms: string): unknown[] {
  return reply.map((value, index) =>
    index % 2 === 1 && /[st]/i.test(algorithms[(index - 1) / 2] ?? '') ? Number(value) / 1000 : value,
  )
}
