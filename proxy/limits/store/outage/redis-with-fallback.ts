import type { Log } from '../../../../shared/log.ts'
import type { Telemetry } from '../../../telemetry/telemetry.ts'
import { countsInFlight } from '../../algorithms/registry.ts'
import type { Charge, Decision, Reservation } from '../../limiter.ts'
import { MemoryLimiter } from '../memory/limiter.ts'
import { RedisLimiter, type RedisEvents, type RedisLimiterOptions } from '../redis/limiter.ts'
import type { LocalCounters } from '../redis/local-counters.ts'
import { createRedisNodes, nodesOf, onlyNode, type RedisNodes } from '../redis/nodes.ts'
import type { RedisClient } from '../redis/run-script.ts'
import { createBrokenCounterLog } from './broken-counter-log.ts'
import type { NodeBreakers } from './node-breakers.ts'
import { NodeOutages, type NodeOutageOptions } from './node-outages.ts'
import { decidePartly } from './partly-away.ts'
import { decideWithoutStore } from './store-fallback.ts'

export type RedisWithFallbackOptions = {
  readonly redis: RedisClient
  /** The prefix of keys in Redis (`keyPrefixOf`). */
  readonly keyPrefix: string
  /** Milliseconds after which a decision is made without Redis. */
  readonly timeoutMs: number
  /** Maximum number of counters in this process while Redis is unavailable. */
  readonly maxKeys: number
  readonly seed: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** The time of day, in milliseconds since 1970. */
  readonly wallNow?: (() => number) | undefined
  readonly log: Log
  readonly telemetry: Pick<Telemetry, 'storeAnswered' | 'storeFailed' | 'breakerChanged'>
  readonly overLimit: RedisLimiterOptions['overLimit']
  readonly forgetResets: NodeOutageOptions['forgetResets']
}

/**
 * Counts in Redis while it is available, and applies each rule's `onStoreError` while it is not. Requests that `local` counters
 * admitted during an outage are added to Redis, exactly once, before Redis decides again. `docs/redis.md` says how far counts can
 * be off.
 *
 * In a cluster, each node has its own circuit breaker: while a node does not answer, only its counters are decided without Redis.
 */
export class RedisWithFallback {
  readonly shared: RedisLimiter
  readonly local: MemoryLimiter
  readonly #redis: RedisClient
  readonly #nodes: RedisNodes
  readonly #outages: NodeOutages
  readonly #breakers: NodeBreakers

  constructor(options: RedisWithFallbackOptions) {
    const { redis, maxKeys, seed, now, wallNow } = options
    const nodes = createRedisNodes(redis)
    const shardOf = redis.isCluster ? nodes.slotOfClient : undefined
    this.#redis = redis
    this.#nodes = nodes
    this.local = new MemoryLimiter({ maxKeys, seed, now, wallNow, shardOf })
    this.shared = new RedisLimiter({
      ...options,
      nodes,
      isAvailable: (node) => !this.#breakers.isOpen(node),
      events: this.#events(options),
      local: this.#localCounters(),
    })
    this.#outages = new NodeOutages({ ...options, nodes, shared: this.shared, local: this.local })
    this.#breakers = this.#outages.breakers
  }

  /** Implements `Limiter.decide`. */
  decide(charges: readonly Charge[]): Decision | Promise<Decision> {
    return this.#breakers.isAnyOpen ? this.#decideWhileOpen(charges) : this.shared.decide(charges)
  }

  /** Implements `Limiter.settle`. */
  settle(reservation: Reservation, costUnits: number): void {
    const { isLocal, units, charge } = reservation
    const isMore = costUnits > units && !countsInFlight(charge.policy)
    const isAway = this.#breakers.isAnyOpen && this.#isAway(charge)
    if (isLocal || (isMore && isAway)) this.#settleLocally(reservation, costUnits)
    else this.shared.settle(reservation, costUnits)
  }

  /** `unavailable` even if only one node of a cluster is. */
  storeState(): 'available' | 'unavailable' {
    return !this.#breakers.isAnyOpen && this.#redis.status === 'ready' ? 'available' : 'unavailable'
  }

  /** The nodes of a cluster whose circuit breakers are open. */
  unavailableNodes(): readonly string[] {
    return this.#breakers.openNodes().filter((node) => node !== onlyNode)
  }

  /** Whether the server of this key is connected, and its circuit breaker closed. */
  isAnswering(key: string): boolean {
    return this.#redis.status === 'ready' && !this.#breakers.isOpen(this.#nodes.ofKey(key))
  }

  /** Forgets the local counts of a client, including those pending sync with Redis. */
  forgetLocal(policyName: string | undefined, partitionKey: string): void {
    this.local.forget(policyName, partitionKey)
    this.#outages.pending.forget(policyName, partitionKey)
  }

  close(): void {
    this.#outages.close()
    this.shared.close()
  }

  #events({ telemetry, log, now, keyPrefix }: RedisWithFallbackOptions): RedisEvents {
    return {
      answered: (durationMs, from) => {
        telemetry.storeAnswered(durationMs)
        this.#outages.answered(from)
      },
      failed: (reason, at) => {
        telemetry.storeFailed()
        this.#outages.failed(reason, at)
      },
      needsMoreCommands: () => this.#outages.checkRights(),
      counterBroken: createBrokenCounterLog(log, now, keyPrefix),
    }
  }

  #localCounters(): LocalCounters {
    return {
      decideWithout: (charges, uncertain) => this.#decideWithout(charges, uncertain),
      addInFlight: (charge) => this.local.addInFlight(charge),
      removeInFlight: (charge) => this.local.removeInFlight(charge),
      takeBackPending: (charge) => this.local.takeBackPending(charge),
      settle: (reservation, costUnits) => this.#settleLocally(reservation, costUnits),
    }
  }

  /** Settles in this process. Missing units are charged in Redis as well, when it answers. */
  #settleLocally(reservation: Reservation, costUnits: number): void {
    this.local.settle({ ...reservation, isLocal: true }, costUnits)
    this.#recordPending([reservation.charge])
  }

  #decideWhileOpen(charges: readonly Charge[]): Decision | Promise<Decision> {
    const away = charges.filter((charge) => this.#isAway(charge))
    if (away.length === 0) return this.shared.decide(charges)
    if (away.length === charges.length) return this.#decideWithout(charges, false)
    return decidePartly({
      charges,
      asked: charges.filter((charge) => !away.includes(charge)),
      away,
      ask: (asked) => this.shared.decide(asked),
      settle: (reservation, costUnits) => this.settle(reservation, costUnits),
      reserveWithout: (without) => this.#decideWithout(without, false, this.local.reservePendingSync),
    })
  }

  #isAway({ partitionKey }: Charge): boolean {
    return this.#breakers.isOpen(this.#nodes.ofClient(partitionKey))
  }

  #decideWithout(
    charges: readonly Charge[],
    uncertain: boolean,
    count = this.local.decidePendingSync,
  ): Decision {
    this.#recordPending(charges)
    return decideWithoutStore(charges, uncertain, (localCharges) =>
      this.#registerInFlight(count(localCharges)),
    )
  }

  /** Registers admitted requests as in flight, so that Redis counts those still in flight when it answers again. */
  #registerInFlight(decision: Decision): Decision {
    if (decision.outcome !== 'allowed') return decision
    const states = decision.states.map((state) =>
      state.reservation && countsInFlight(state.policy)
        ? { ...state, reservation: this.shared.addInFlight(state.reservation.charge) }
        : state,
    )
    return { ...decision, states }
  }

  #recordPending(charges: readonly Charge[]): void {
    if (this.#redis.isCluster) this.#outages.pending.add(nodesOf(this.#nodes, charges))
  }
}
