import type { Policy } from '../../../policy.ts'
import { algorithmOf, countsInFlight } from '../../algorithms/registry.ts'
import type { Charge, Decision, Reservation } from '../../limiter.ts'
import { Batching } from '../batching.ts'
import type { LateAnswer } from '../late-answers.ts'
import type { OverLimitCache } from '../over-limit-cache.ts'
import type { LeaseStore } from '../leases/lease-store.ts'
import type { AskedBatch, BatchHooks, RemoteCounters } from '../remote-counters.ts'
import type { Refusal } from './checks/rights.ts'
import { Probes } from './checks/probes.ts'
import { withAdvice } from './checks/sharding.ts'
import { askedOnly, createAskedNodes, type AskedNodes } from './deciding/asked-nodes.ts'
import { createClusterLanes } from './deciding/cluster-nodes.ts'
import { askAcrossSlots } from './deciding/cross-slot.ts'
import { readPlan, sendDecision, takeBack, type CommandContext } from './deciding/decision-commands.ts'
import { hasCountedNothing } from './errors.ts'
import { keyOf } from './keys.ts'
import type { LocalCounters } from './local-counters.ts'
import type { RedisNodes } from './nodes.ts'
import type { RedisClient, RedisNode } from './run-script.ts'
import { CountedPolicies } from './scripts/counted-policies.ts'
import { InFlightRequests } from './settling/in-flight.ts'
import { RedisLeaseStore } from './settling/lease-store.ts'
import { createAddOnce, type AddOnce } from './settling/add-once.ts'
import { createSettling, type Settling } from './settling/settling.ts'

/**
 * The maximum number of charges in a command. Redis decides this many in less than half a millisecond, during which its other clients wait.
 *
 * @internal exported for `bench/capacity`
 */
export const CHARGES_IN_COMMAND = 256

/**
 * The maximum number of unanswered commands: enough that Redis is never idle for lack of one. Requests that wait for an answer share a
 * command, which is cheaper. With a maximum of one, requests would wait half a round trip on a slow network.
 *
 * @internal exported for `bench/capacity`
 */
export const MAX_UNANSWERED = 3

const ADD_TIMEOUT_MS = 1000

/**
 * Milliseconds for which a refusal is cached in a cluster, or if other processes hold leases: the refusal can be due to units that are
 * about to be given back.
 */
const UNSETTLED_FOR_MS = 250

/** Called with what Redis answers, or fails to. Nodes are named as in `RedisNodes`. */
export type RedisEvents = Pick<BatchHooks, 'counterBroken'> & {
  /** Called when these nodes have answered. */
  answered(durationMs: number, nodes: ReadonlySet<string>): void
  /** Called as in `BatchHooks`, with the nodes that have not answered or have failed. */
  failed(reason: string, nodes: ReadonlySet<string>): void
  /** Called when policies need commands of Redis that no earlier one has needed. */
  needsMoreCommands(): void
}

export type RedisLimiterOptions = {
  readonly redis: RedisClient
  /** The prefix of keys in Redis (`keyPrefixOf`). */
  readonly keyPrefix: string
  /** Milliseconds after which a decision is made without Redis. */
  readonly timeoutMs: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** The time of day, in milliseconds since 1970. */
  readonly wallNow?: (() => number) | undefined
  readonly events: RedisEvents
  readonly local: LocalCounters
  /** Records the clients that Redis refuses, and those to which it gives back units. */
  readonly overLimit: Pick<OverLimitCache, 'record' | 'gaveBack'>
  readonly nodes: RedisNodes
  /** Whether a node may get commands that no request waits for. */
  readonly isAvailable: (node: string) => boolean
}

/**
 * Counts in Redis. The requests of one turn of the event loop, or those that arrive while a few commands are unanswered, are sent in
 * one command, which decides each of them atomically with all its charges. In a cluster, each node gets its own commands. A
 * request with counters on several nodes is asked about by itself.
 */
export class RedisLimiter {
  /** Adds requests that were admitted without Redis. */
  readonly addOnce: AddOnce
  /** The leases of policies with `lease`. */
  readonly leaseStore: LeaseStore
  readonly #redis: RedisClient
  readonly #nodes: RedisNodes
  readonly #isAvailable: RedisLimiterOptions['isAvailable']
  readonly #events: RedisEvents
  readonly #local: LocalCounters
  readonly #overLimit: RedisLimiterOptions['overLimit']
  readonly #commands: CommandContext
  readonly #batching: Batching<RedisNode>
  readonly #asked: AskedNodes
  readonly #inFlight: InFlightRequests
  /** The nodes that may not know all requests in flight. */
  readonly #uninformed = new Set<string>()
  readonly #settling: Settling
  readonly #probes: Probes
  readonly #stopListening: () => void
  /** Policies whose counters may include a request that another node refused, until the request is given back. */
  readonly #unsettled = new WeakSet<Policy>()

  constructor(options: RedisLimiterOptions) {
    const { redis, keyPrefix, timeoutMs, now, events, local, nodes, isAvailable } = options
    const policies = new CountedPolicies({ ...options, needsMore: () => events.needsMoreCommands() })
    const { describe } = policies
    let connections = 0
    const ofCharge = {
      redis,
      describe: ({ policy }: Charge) => describe(policy),
      isAnswering: ({ partitionKey }: Charge) =>
        redis.status === 'ready' && isAvailable(nodes.ofClient(partitionKey)),
      // Each connection may lead to another server.
      serverOf: ({ partitionKey }: Charge) =>
        redis.isCluster ? nodes.ofClient(partitionKey) : `${connections}`,
    }
    const inFlight = new InFlightRequests(ofCharge)
    const probes = new Probes({ redis, nodes, keyPrefix, readUsed: () => policies.readUse(), timeoutMs })
    this.#redis = redis
    this.#nodes = nodes
    this.#isAvailable = isAvailable
    this.#events = events
    this.#local = local
    this.#overLimit = options.overLimit
    this.#commands = {
      redis,
      describe,
      useScript: (script) => policies.use(script),
      nextName: () => inFlight.nextName(),
    }
    this.#asked = redis.isCluster ? createAskedNodes(nodes) : askedOnly
    this.#inFlight = inFlight
    this.#settling = createSettling({
      ...ofCharge,
      now,
      describe: ({ charge }) => describe(charge.policy),
      notExecuted: (settled) => {
        for (const { reservation, units } of settled)
          if (units < 0) local.settle(reservation, reservation.units - units)
      },
    })
    this.#probes = probes
    this.#batching = new Batching({ counters: this.#counters(), timeoutMs, now, hooks: this.#batchHooks() })
    this.leaseStore = new RedisLeaseStore(ofCharge)
    redis.on('ready', () => {
      connections += 1
      this.#informServers()
    })
    this.#stopListening = nodes.onMoved(() => this.#informServers())
    this.addOnce = createAddOnce({
      redis,
      keyPrefix,
      describe,
      now,
      runs: (script, keyCount, args) => probes.runs(script, keyCount, args, ADD_TIMEOUT_MS),
    })
  }

  /** Implements `Limiter.decide` with the counts in Redis. */
  decide(charges: readonly Charge[]): Promise<Decision> {
    return this.#batching.decide(charges)
  }

  /** Implements `Limiter.settle` with the counts in Redis. */
  settle(reservation: Reservation, costUnits: number): void {
    const { charge, units, ticket } = reservation
    if (countsInFlight(charge.policy)) {
      if (this.#inFlight.remove(String(ticket))) this.#local.removeInFlight(charge)
      this.#settling.settle(reservation, units)
    } else if (units !== costUnits) this.#settling.settle(reservation, units - costUnits)
  }

  /** Counts a request in flight that was allowed without Redis, as soon as Redis answers. */
  addInFlight(charge: Charge): Reservation {
    const name = this.#inFlight.nextName()
    this.#inFlight.addUnsent(name, charge)
    this.#uninformed.add(this.#nodes.ofClient(charge.partitionKey))
    return { charge, units: 1, isLocal: false, ticket: name }
  }

  /** Sends the requests of `addInFlight` on this node that it may not know yet, ahead of all later decisions. */
  sendInFlight(node: string): void {
    if (!this.#uninformed.delete(node)) return
    this.#inFlight
      .sendUnsent(({ partitionKey }) => this.#nodes.ofClient(partitionKey) === node)
      .catch(() => this.#uninformed.add(node))
  }

  /** Renews all requests in flight on this node, and sends the ends of others again. */
  renewInFlight(node: string): Promise<void> {
    this.#settling.sendAgain()
    return this.#inFlight.renew(({ partitionKey }) => this.#nodes.ofClient(partitionKey) === node)
  }

  /** Implements `Probes.probe`. */
  probe(node: string): Promise<boolean> {
    return this.#probes.probe(node)
  }

  /** Implements `Probes.findRefusal`. */
  findRefusal(node: string): Promise<Refusal | undefined> {
    return this.#probes.findRefusal(node)
  }

  /** Decides pending requests without Redis: all that wait for this node or, without a node, all pending requests. */
  giveUp(node?: string): void {
    this.#batching.giveUp(node === undefined ? undefined : (batch) => this.#asked.failing(batch).has(node))
  }

  close(): void {
    this.#stopListening()
    this.#batching.giveUp()
    this.#inFlight.close()
  }

  /** Tells servers that may have taken over counters the requests in flight and the last ends, ahead of all later decisions. */
  #informServers(): void {
    this.#settling.sendToNewServers()
    this.#uninformed.clear()
    for (const { partitionKey } of this.#inFlight.findUnsent())
      this.#uninformed.add(this.#nodes.ofClient(partitionKey))
    for (const node of this.#uninformed) if (this.#isAvailable(node)) this.sendInFlight(node)
  }

  #counters(): RemoteCounters<RedisNode> {
    const redis = this.#redis
    const { describe } = this.#commands
    return {
      batchSize: CHARGES_IN_COMMAND,
      maxUnanswered: MAX_UNANSWERED,
      isConnected: () => redis.status === 'ready',
      ...('nodes' in redis && {
        lanes: createClusterLanes(redis, ({ policy, partitionKey }) => keyOf(describe(policy), partitionKey)),
      }),
      ask: (requests, isAwaited, node) =>
        redis.isCluster && !node
          ? this.#askAcrossSlots(requests, isAwaited)
          : sendDecision(this.#commands, requests, isAwaited, node),
      answeredLate: (late) => this.#answeredLate(late),
      hasCountedNothing,
    }
  }

  #batchHooks(): BatchHooks<RedisNode> {
    const [events, local] = [this.#events, this.#local]
    return {
      answered: (durationMs, batch) => events.answered(durationMs, this.#asked.answering(batch)),
      failed: (reason, batch) => this.#failed(reason, batch),
      counterBroken: (policies, reason) => events.counterBroken(policies, reason),
      decideWithout: (charges, uncertain) => local.decideWithout(charges, uncertain),
      reserved: (reservation) => this.#reserved(reservation),
      refused: (charges, refusal, askedAtMs) => this.#refused(charges, refusal, askedAtMs),
    }
  }

  /** @param requests a single request, in a cluster, that no node can decide alone */
  #askAcrossSlots(
    requests: readonly (readonly Charge[])[],
    isAwaited: () => boolean,
  ): Promise<readonly unknown[]> {
    const [charges = []] = requests
    return askAcrossSlots(charges, {
      askNode: (part) => this.#asked.follow(requests, part, sendDecision(this.#commands, [part], isAwaited)),
      giveBack: (counted) => takeBack(this.#commands, counted),
      readPlan: (charge) => readPlan(this.#commands, charge),
      split: (parts) => {
        for (const { policy } of parts) this.#unsettled.add(policy)
      },
    })
  }

  #failed(reason: string, batch: AskedBatch<RedisNode>): void {
    this.#events.failed(withAdvice(reason, this.#redis), this.#asked.failing(batch))
    this.#probes.followMaster(reason)
  }

  #reserved({ charge, ticket }: Reservation): void {
    if (!countsInFlight(charge.policy)) return
    this.#inFlight.add(String(ticket), charge)
    this.#local.addInFlight(charge)
  }

  #refused(charges: readonly Charge[], refusal: Decision & { outcome: 'refused' }, askedAtMs: number): void {
    const { refusedBy } = refusal
    const isBrief = this.#unsettled.has(refusedBy) || refusedBy.lease !== undefined
    this.#overLimit.record(charges, refusal, askedAtMs, isBrief ? UNSETTLED_FOR_MS : Infinity)
  }

  /**
   * Makes sure that a request is counted once. If it was counted in this process as well, the local count is no longer added to
   * Redis. If that count has been added already, or if the cost is not known yet, Redis's own count is given back. It is also given
   * back if the request was refused. Then the client may pass again. If its window may have ended, nothing is given back, because the
   * units of the next window would be: at most, the request counts for as long as the answer was late.
   */
  #answeredLate(late: LateAnswer): void {
    const { charge, meanwhile } = late
    const isInFlight = countsInFlight(charge.policy)
    if (!isInFlight && meanwhile === 'admitted') return
    if (!isInFlight && meanwhile === 'counted' && this.#local.takeBackPending(charge)) return
    if (mayBeOfEndedWindow(late)) return
    // The request may have been admitted under another name, which has to count before this one is taken back.
    if (isInFlight) this.sendInFlight(this.#nodes.ofClient(charge.partitionKey))
    takeBack(this.#commands, late)
      // It is unknown then whether Redis has given it back.
      .catch(() => undefined)
      .finally(() => this.#overLimit.gaveBack(charge))
  }
}

/** Whether the window that the charge was counted in may have ended, and nothing but the time that it had left distinguishes it. */
function mayBeOfEndedWindow({ charge, leftMs, sinceAskedMs, ticket }: LateAnswer): boolean {
  return ticket === undefined && algorithmOf(charge.policy).resets === 'all' && sinceAskedMs >= leftMs
}
