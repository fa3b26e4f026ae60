import type { Log } from '../../../../shared/log.ts'
import type { Policy } from '../../../policy.ts'
import { countsInFlight } from '../../algorithms/registry.ts'
import type { Telemetry } from '../../../telemetry/telemetry.ts'
import type { DecisionHooks } from '../remote-counters.ts'
import type { Charge, Decision, Limiter, Reservation } from '../../limiter.ts'
import { createMemoryLimiter, type MemoryLimiter } from '../memory/limiter.ts'
import { lacksRight } from '../redis/errors.ts'
import { RedisLimiter, type RedisHooks } from '../redis/limiter.ts'
import { describePolicy, keyOf } from '../redis/keys.ts'
import { createRedisNodes, nodesOf, onlyNode } from '../redis/nodes.ts'
import type { RedisClient } from '../redis/run-script.ts'
import { createDebts } from './debts.ts'
import { createNodeBreakers } from './node-breakers.ts'
import { decidePartly } from './partly-away.ts'
import { decideWithoutStore } from './store-fallback.ts'

export type RedisWithFallback = Limiter & {
  readonly shared: RedisLimiter
  readonly local: MemoryLimiter
  /** `unavailable` also where it is one node of a cluster that is. */
  storeState(): 'available' | 'unavailable'
  /** The nodes of a cluster whose circuit breakers are open. */
  unavailableNodes(): readonly string[]
  /** Whether the server of this key is connected, and its circuit breaker closed. */
  isAnswering(key: string): boolean
  /** Forgets the local counts of a client, including those pending sync with Redis. */
  forgetLocal(policyName: string | undefined, partitionKey: string): void
  close(): void
}

/**
 * Counts in Redis while it is available, and applies each rule's `onStoreError` while it is not. Requests that `local` counters
 * admitted during an outage are added to Redis, exactly once, before Redis decides again. `docs/redis.md` says how far counts can
 * be off.
 *
 * In a cluster each node has a circuit breaker of its own: while one does not answer, only its counters are decided without Redis.
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
  /**
   * Called before local counts are added to a node: some may have to be forgotten instead, as clients were reset.
   *
   * @param isReached whether there is any use in asking for this key
   */
  readonly recovering: (isReached: (key: string) => boolean) => Promise<void>
}): RedisWithFallback {
  const { redis, keyPrefix, timeoutMs, maxKeys, seed, now, wallNow, log, telemetry } = options
  const nodes = createRedisNodes(redis)
  const shardOf = redis.isCluster ? nodes.slotOfClient : undefined
  const local = createMemoryLimiter({ maxKeys, seed, now, wallNow, shardOf })
  const breakers = createNodeBreakers({
    recover,
    opened(node) {
      recovering.delete(node)
      shared.giveUp(node)
    },
    now,
    log,
    telemetry,
  })
  const shared = new RedisLimiter({
    redis,
    nodes,
    isAvailable: (node) => !breakers.isOpen(node),
    keyPrefix,
    timeoutMs,
    now,
    wallNow,
    hooks: {
      answered(durationMs, from) {
        telemetry.storeAnswered(durationMs)
        for (const node of from) {
          breakers.succeeded(node)
          if (debts.owes(node) && !breakers.isOpen(node)) void repay(node)
        }
      },
      failed(reason, at) {
        telemetry.storeFailed()
        for (const node of at) {
          breakers.failed(node, reason)
          // Only some requests need the command. Others succeed in between and would keep the circuit breaker closed.
          if (!breakers.isOpen(node) && lacksRight(reason)) void isRefused(node)
        }
      },
      counterBroken: createBrokenCounterLog(log, now, keyPrefix),
      decideWithout,
      inFlight: (charge, change) => (change === 1 ? local.addInFlight(charge) : local.removeInFlight(charge)),
      countedTwice: (charge) => local.takeBackPending(charge),
      refused: options.refused,
    },
  })
  const debts = createDebts({
    redis,
    nodes,
    local,
    addOnce: shared.addOnce,
    lastSent(node) {
      if (recovering.has(node)) breakers.close(node)
    },
  })
  /** Nodes of which a probe has succeeded since. Without that, a repayment that began before the outage does not end it. */
  const recovering = new Set<string>()

  function decideWithout(
    charges: readonly Charge[],
    uncertain: boolean,
    count = local.decidePendingSync,
  ): Decision {
    if (redis.isCluster) debts.note(nodesOf(nodes, charges))
    return decideWithoutStore(charges, uncertain, (localCharges) => withNames(count(localCharges)))
  }

  function decideWhileOpen(charges: readonly Charge[]): Decision | Promise<Decision> {
    const isAway = ({ partitionKey }: Charge): boolean => breakers.isOpen(nodes.ofClient(partitionKey))
    const away = charges.filter(isAway)
    if (away.length === 0) return shared.decide(charges)
    if (away.length === charges.length) return decideWithout(charges, false)
    return decidePartly({
      charges,
      asked: charges.filter((charge) => !away.includes(charge)),
      away,
      ask: (asked) => shared.decide(asked),
      settle,
      reserveWithout: (without) => decideWithout(without, false, local.reservePendingSync),
    })
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
    const isAway = breakers.isAnyOpen && breakers.isOpen(nodes.ofClient(charge.partitionKey))
    if (isLocal) local.settle(reservation, costUnits)
    // The missing units are charged here, and in Redis when it answers.
    else if (isMore && isAway) local.settle({ ...reservation, isLocal: true }, costUnits)
    else shared.settle(reservation, costUnits)
    if (redis.isCluster && isLocal) debts.note(nodesOf(nodes, [charge]))
  }

  async function recover(node: string): Promise<void> {
    if (!nodes.has(node)) {
      moved()
      return
    }
    if (await isRefused(node)) return
    if (!(await shared.probe(node))) return
    await options.recovering((key) => nodes.ofKey(key) === node || !breakers.isOpen(nodes.ofKey(key)))
    await shared.renewInFlight(node)
    recovering.add(node)
    if (!(await repay(node))) return
    breakers.close(node)
  }

  /**
   * Slots may have other nodes now. Requests that were admitted while the old ones were away are added to these, before they decide
   * about the next request.
   */
  function moved(): void {
    for (const node of breakers.openNodes()) if (!nodes.has(node)) breakers.close(node, node !== onlyNode)
    const creditors = debts.creditors()
    debts.note(creditors)
    if (redis.status !== 'ready') return
    for (const node of creditors) if (!breakers.isOpen(node)) void repay(node)
  }

  /**
   * Whether the node refuses a command that decisions need, such as one that its ACL denies. If so, opens the circuit
   * breaker.
   */
  async function isRefused(node: string): Promise<boolean> {
    const refusal = await shared.findRefusal(node)
    if (!refusal) return false
    const { command, reply } = refusal
    breakers.open(node, command === undefined ? reply : `${reply} (${command})`, reply)
    return true
  }

  async function repay(node: string): Promise<boolean> {
    const isRepaid = await debts.repay(node)
    if (!isRepaid && !(await isRefused(node)) && !breakers.isOpen(node))
      breakers.open(node, 'could not add the requests admitted during the outage')
    return isRepaid
  }

  // Checked on each new connection, rather than after three failed decisions.
  const onReady = (): void => nodes.names().forEach((node) => void isRefused(node))
  redis.on('ready', onReady)
  if (redis.status === 'ready') onReady()
  const stopHearing = nodes.onMoved(moved)

  return {
    shared,
    local,
    settle,
    decide: (charges) => (breakers.isAnyOpen ? decideWhileOpen(charges) : shared.decide(charges)),
    storeState: () => (!breakers.isAnyOpen && redis.status === 'ready' ? 'available' : 'unavailable'),
    unavailableNodes: () => breakers.openNodes().filter((node) => node !== onlyNode),
    isAnswering: (key) => redis.status === 'ready' && !breakers.isOpen(nodes.ofKey(key)),
    forgetLocal(policyName, partitionKey) {
      local.forget(policyName, partitionKey)
      debts.forget(policyName, partitionKey)
    },
    close() {
      redis.off('ready', onReady)
      stopHearing()
      breakers.stop()
      shared.close()
    },
  }
}

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
