import { reservedUnits, type Policy } from '../../../policy.ts'
import type { Algorithm } from '../../algorithms/algorithm.ts'
import { algorithms, countsInFlight, isReserved, usualAlgorithm } from '../../algorithms/registry.ts'
import { withAdvice } from './checks/sharding.ts'
import { askedOnly, createAskedNodes } from './deciding/asked-nodes.ts'
import { createClusterLanes } from './deciding/cluster-nodes.ts'
import { askAcrossSlots, type Counted } from './deciding/cross-slot.ts'
import { Batching } from '../batching.ts'
import type { LateAnswer } from '../late-answers.ts'
import type { DecisionHooks } from '../remote-counters.ts'
import type { Charge, Reservation } from '../../limiter.ts'
import { hasCountedNothing } from './errors.ts'
import { createDescriber, keyOf, planKeyUnder } from './keys.ts'
import { createRedisNodes, type RedisNodes } from './nodes.ts'
import { createProbes, type Probes } from './checks/probes.ts'
import {
  loadWhenConnected,
  runScript,
  withUndeclaredKeys,
  type RedisClient,
  type RedisNode,
} from './run-script.ts'
import { commandOf } from './scripts/command.ts'
import { decideByPlansScript, decideScript } from './scripts/decide.ts'
import { decidePlainScript, decideSingleScript } from './scripts/decide-plain.ts'
import { decideSingleByPlansScript } from './scripts/decide-plain-plans.ts'
import { PolicyArguments } from './scripts/policy-arguments.ts'
import { settleScript } from './scripts/settle.ts'
import { createRepayment, type AddOnce } from './settling/repayment.ts'
import { createSettling } from './settling/settling.ts'
import { createRedisLeaseStore } from './settling/lease-store.ts'
import { giveBackLeasesScript, takeLeasesScript } from './scripts/lease.ts'
import type { LeaseStore } from '../leases/lease-store.ts'
import { InFlightRequests } from './settling/in-flight.ts'

export type RedisLimiter = Pick<Batching, 'decide'> &
  Pick<Probes, 'probe' | 'findRefusal'> & {
    /** Decides without Redis all pending requests that this node is asked about, or all there are. */
    giveUp(node?: string): void
    /** As `Limiter`, for the counts in Redis. */
    settle(reservation: Reservation, costUnits: number): void
    /** Counts a request in flight that was let through without Redis, as soon as Redis answers. */
    addInFlight(charge: Charge): Reservation
    /** Tells this node of all requests in flight there. */
    renewInFlight(node: string): Promise<void>
    close(): void
    readonly addOnce: AddOnce
    /** Of policies with `lease`. */
    readonly leaseStore: LeaseStore
  }

/**
 * Redis decides this many in less than half a millisecond, during which its other clients wait.
 *
 * @internal exported for `bench/capacity`
 */
export const CHARGES_IN_COMMAND = 256

/**
 * Enough that Redis is never idle for want of a command. Requests that wait for an answer share a command, which is cheaper. With a
 * maximum of one, requests would wait half a round trip where the network is slow.
 *
 * @internal exported for `bench/capacity`
 */
export const MAX_UNANSWERED = 3

const ADD_TIMEOUT_MS = 1000

/** In a cluster, or where others hold leases, a refusal can be due to units that are about to be given back: it is cached so long only. */
const UNSETTLED_FOR_MS = 250

/** Nodes are named as in `RedisNodes`. */
export type RedisHooks = Omit<DecisionHooks, 'answered' | 'failed' | 'refused' | 'reserved'> & {
  /** These nodes have answered. */
  answered(durationMs: number, nodes: ReadonlySet<string>): void
  /** As in `DecisionHooks`, and which nodes have not answered, or failed. */
  failed(reason: string, nodes: ReadonlySet<string>): void
  /** Redis has let a request through that is now in flight (1), or such a request is over (-1). */
  inFlight?(charge: Charge, change: 1 | -1): void
  /**
   * Redis has counted a charge that was counted in this process while Redis was late. Returns whether the latter will not be
   * added to Redis.
   */
  countedTwice?(charge: Charge): boolean
  /** As in `DecisionHooks`. The refusal may be cached until the window ends, but for no longer than `knownForMs`. */
  refused(...refusal: [...Parameters<DecisionHooks['refused']>, knownForMs: number]): void
}

/**
 * Counts in Redis. The requests of one turn of the event loop, or those that arrive while a few commands are unanswered, are sent in
 * one command, which decides each of them atomically with all its charges. In a cluster each node gets commands of its own. A
 * request with counters on several nodes is asked about by itself.
 *
 * @param options.keyPrefix of `keyPrefixOf`
 * @param options.isAvailable whether there is any use in asking a node about what no request waits for
 * @param options.timeoutMs after which a decision is made without Redis
 * @param options.now milliseconds of a monotonic clock
 * @param options.wallNow the time of day, in milliseconds since 1970
 */
export function createRedisLimiter(options: {
  readonly redis: RedisClient
  readonly keyPrefix: string
  readonly timeoutMs: number
  readonly now: () => number
  readonly wallNow?: (() => number) | undefined
  readonly hooks: RedisHooks
  readonly nodes?: RedisNodes
  readonly isAvailable?: (node: string) => boolean
}): RedisLimiter {
  const { redis, keyPrefix, timeoutMs, now, hooks, isAvailable = () => true } = options
  const nodes = options.nodes ?? createRedisNodes(redis)
  const asked = redis.isCluster ? createAskedNodes(nodes) : askedOnly
  const isAnswering = ({ partitionKey }: Charge): boolean =>
    redis.status === 'ready' && isAvailable(nodes.ofClient(partitionKey))
  /** The algorithms of the policies that have been counted, and whether anything is reserved under them. */
  const used = new Map<Algorithm, boolean>([[usualAlgorithm, false]])
  /** Those of policies that read the plans of clients. */
  const planned = new Set<Algorithm>()
  /** Units have been taken ahead under some policy. */
  let isLeasing = false
  /** Policies whose counters may include a request that another node refused, until it is given back. */
  const unsettled = new WeakSet<Policy>()

  const load = loadWhenConnected(redis, () => {
    const deciding = [
      ...Array.from(used.keys(), (algorithm) => decideScript(new Set([algorithm]))),
      decideScript(new Set(algorithms)),
      ...Array.from(planned, (algorithm) => decideByPlansScript(new Set([algorithm]))),
      ...(planned.size > 0 ? [decideByPlansScript(new Set(algorithms)), decideSingleByPlansScript] : []),
      decideSingleScript,
      decidePlainScript,
    ]
    return [
      ...deciding,
      ...(redis.isCluster ? deciding.map(withUndeclaredKeys) : []),
      settleScript,
      ...(isLeasing ? leaseScripts : []),
    ]
  })
  const describe = createDescriber(keyPrefix, options.wallNow, (policy, { algorithm, plans }) => {
    if (plans !== undefined && !planned.has(algorithm)) {
      planned.add(algorithm)
      load(decideByPlansScript(new Set([algorithm])))
      if (algorithm === usualAlgorithm) load(decideSingleByPlansScript)
    }
    if (!used.has(algorithm)) load(decideScript(new Set([algorithm])))
    if (policy.lease !== undefined && !isLeasing) {
      isLeasing = true
      leaseScripts.forEach(load)
    }
    const takesMore = isReserved(policy) || policy.cost !== undefined || policy.lease !== undefined
    used.set(algorithm, used.get(algorithm) || takesMore)
  })

  function giveBack({ charge, leftMs, countedAt, ticket }: Counted): Promise<unknown> {
    const { policy, partitionKey } = charge
    const description = describe(policy)
    const told = description.takesUnits
      ? String(ticket)
      : description.algorithm.redis.ticketOf(leftMs, countedAt)
    const policies = new PolicyArguments()
    const settled = [policies.numberOf(description), told, String(charge.units ?? reservedUnits(policy))]
    const keyAndArguments = [keyOf(description, partitionKey), ...policies.toArguments(), ...settled]
    return runScript(redis, settleScript, 1, keyAndArguments)
  }

  /** The name of the client's plan, which may be any text; empty without one. */
  async function readPlan({ policy, partitionKey }: Charge): Promise<string> {
    return (await redis.get(planKeyUnder(describe(policy), partitionKey))) ?? ''
  }

  /** @param node of a cluster, with the counters of all these requests; else the command is sent where its first key is */
  async function ask(
    requests: readonly (readonly Charge[])[],
    isAwaited: () => boolean,
    node?: RedisNode,
  ): Promise<readonly unknown[]> {
    const { script, keys, args, readReply } = commandOf(requests, describe, () => inFlight.nextName())
    const reply = node
      ? await runScript(
          node,
          withUndeclaredKeys(script),
          0,
          [String(keys.length), ...keys, ...args],
          isAwaited,
        )
      : await runScript(redis, script, keys.length, [...keys, ...args], isAwaited)
    if (!Array.isArray(reply)) throw new TypeError('unexpected reply from Redis: not an array')
    return readReply(reply)
  }

  const probes = createProbes({
    redis,
    nodes,
    keyPrefix,
    readUsed: () =>
      Array.from(used, ([algorithm, isReserved]) => ({
        algorithm,
        isReserved,
        readsPlans: planned.has(algorithm),
      })),
    timeoutMs,
  })
  const inFlight = new InFlightRequests({
    redis,
    describe: ({ policy }) => describe(policy),
    isAnswering,
  })
  const settling = createSettling({
    redis,
    describe: ({ charge }) => describe(charge.policy),
  })

  function settle(reservation: Reservation, costUnits: number): void {
    const { charge, units, ticket } = reservation
    if (countsInFlight(charge.policy)) {
      if (inFlight.remove(String(ticket))) hooks.inFlight?.(charge, -1)
      settling.settle(reservation, units)
    } else if (units !== costUnits) settling.settle(reservation, units - costUnits)
  }

  function unsettle(charges: readonly Charge[]): void {
    for (const { policy } of charges) unsettled.add(policy)
  }

  /**
   * A request is counted once. Where it was counted in this process as well, that is not added to Redis any more; if it has been
   * added, or the cost is not known yet, Redis's own is given back. So it is where the request was refused.
   */
  function answeredLate(late: LateAnswer): void {
    const { charge, meanwhile } = late
    const isInFlight = countsInFlight(charge.policy)
    if (!isInFlight && meanwhile === 'admitted') return
    if (!isInFlight && meanwhile === 'counted' && hooks.countedTwice?.(charge)) return
    giveBack(late).catch(() => undefined)
  }

  const batching = new Batching<RedisNode>({
    counters: {
      batchSize: CHARGES_IN_COMMAND,
      maxUnanswered: MAX_UNANSWERED,
      isConnected: () => redis.status === 'ready',
      ...('nodes' in redis
        ? {
            lanes: createClusterLanes(redis, ({ policy, partitionKey }) =>
              keyOf(describe(policy), partitionKey),
            ),
          }
        : {}),
      ask(requests, isAwaited, node) {
        const [charges = []] = requests
        if (!redis.isCluster || node) return ask(requests, isAwaited, node)
        const askNode = (part: readonly Charge[]): ReturnType<typeof ask> =>
          asked.follow(requests, part, ask([part], isAwaited))
        return askAcrossSlots(charges, { askNode, giveBack, readPlan, split: unsettle })
      },
      answeredLate,
      hasCountedNothing,
    },
    timeoutMs,
    now,
    hooks: {
      ...hooks,
      reserved(reservation) {
        const { charge, ticket } = reservation
        if (!countsInFlight(charge.policy)) return
        inFlight.add(String(ticket), charge)
        hooks.inFlight?.(charge, 1)
      },
      refused(charges, refusal, askedAtMs) {
        const { refusedBy } = refusal
        const isBrief = unsettled.has(refusedBy) || refusedBy.lease !== undefined
        const knownForMs = isBrief ? UNSETTLED_FOR_MS : Infinity
        hooks.refused(charges, refusal, askedAtMs, knownForMs)
      },
      answered: (durationMs, batch) => hooks.answered(durationMs, asked.answering(batch)),
      failed(reason, batch) {
        hooks.failed(withAdvice(reason, redis), asked.failing(batch))
        probes.followMaster(reason)
      },
    },
  })

  return {
    decide: (charges) => batching.decide(charges),
    giveUp(node) {
      batching.giveUp(node === undefined ? undefined : (batch) => asked.failing(batch).has(node))
    },
    settle,
    addInFlight(charge) {
      const name = inFlight.nextName()
      inFlight.add(name, charge)
      return { charge, units: 1, isLocal: false, ticket: name }
    },
    renewInFlight: (node) => inFlight.renew((charge) => nodes.ofClient(charge.partitionKey) === node),
    close() {
      batching.giveUp()
      inFlight.close()
    },
    leaseStore: createRedisLeaseStore({
      redis,
      describe: ({ policy }) => describe(policy),
      isAnswering,
    }),
    probe: (node) => probes.probe(node),
    findRefusal: (node) => probes.findRefusal(node),
    addOnce: createRepayment({
      redis,
      keyPrefix,
      describe,
      now,
      runs: (script, keyCount, args) => probes.runs(script, keyCount, args, ADD_TIMEOUT_MS),
    }),
  }
}

const leaseScripts = [takeLeasesScript, giveBackLeasesScript]
