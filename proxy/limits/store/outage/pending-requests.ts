import { randomUUID } from 'node:crypto'
import type { MemoryLimiter, PendingCharge } from '../memory/limiter.ts'
import type { RedisNodes } from '../redis/nodes.ts'
import { inOneWrite, type RedisClient } from '../redis/run-script.ts'
import type { AddOnce } from '../redis/settling/add-once.ts'

/** The maximum number of counters and times added in one command, which takes a few milliseconds of Redis's time at most. */
const COUNTERS_IN_COMMAND = 500

/** A part that was sent and not confirmed. It keeps its id, so that it cannot be added twice. In a cluster it belongs to one client. */
type SentPart = { readonly id: string; readonly partitionKey: string; charges: readonly PendingCharge[] }

export type PendingRequestsOptions = {
  readonly redis: RedisClient
  readonly nodes: RedisNodes
  /** The limiter that has the pending counts, and hands each out once. */
  readonly local: Pick<MemoryLimiter, 'hasPending' | 'takePending' | 'pendingShards'>
  readonly addOnce: AddOnce
  /**
   * Called when the last part for a node is sent, not when it is answered: under load, there is always something new to add by then, and
   * later commands follow the last part on the same connection anyway.
   */
  readonly lastSent: (node: string) => void
}

/** Requests that this process has admitted while a Redis node was unavailable, and has to add there. */
export class PendingRequests {
  readonly #redis: RedisClient
  readonly #nodes: RedisNodes
  readonly #local: PendingRequestsOptions['local']
  readonly #addOnce: AddOnce
  readonly #lastSent: (node: string) => void
  /** Parts that Redis has not confirmed: they are sent again first. */
  readonly #unconfirmed = new Set<SentPart>()
  /** The nodes of a cluster to which requests may have to be added. */
  readonly #pendingNodes = new Set<string>()
  /** By node, while requests are being added there. */
  readonly #adding = new Map<string, Promise<boolean>>()

  constructor({ redis, nodes, local, addOnce, lastSent }: PendingRequestsOptions) {
    this.#redis = redis
    this.#nodes = nodes
    this.#local = local
    this.#addOnce = addOnce
    this.#lastSent = lastSent
  }

  /** Records that requests were counted here, and must be added at these nodes as soon as they answer. */
  add(nodes: Iterable<string>): void {
    if (this.#redis.isCluster) for (const node of nodes) this.#pendingNodes.add(node)
  }

  /** Whether requests are pending for this node. Costs nothing while no requests are pending at all. */
  hasPendingAt(node: string): boolean {
    if (this.#unconfirmed.size === 0 && !this.#local.hasPending()) return false
    return !this.#redis.isCluster || this.#pendingNodes.has(node)
  }

  /** Returns the nodes that have the counters of pending requests now, even if these have moved since the requests were counted. */
  nodes(): ReadonlySet<string> {
    const clients = Array.from(this.#unconfirmed, ({ partitionKey }) => this.#nodes.ofClient(partitionKey))
    return new Set([...clients, ...Array.from(this.#local.pendingShards(), this.#nodes.ofSlot)])
  }

  /** Adds all pending requests of the node, each once, in parts. Resolves to whether Redis has confirmed all parts. */
  addAt(node: string): Promise<boolean> {
    const running = this.#adding.get(node)
    if (running) return running
    const started = this.#addAll(node).finally(() => this.#adding.delete(node))
    this.#adding.set(node, started)
    return started
  }

  /** Drops the counts of a client that was reset, so that they are no longer added. */
  forget(policyName: string | undefined, partitionKey: string): void {
    const isForgotten = (charge: PendingCharge): boolean =>
      charge.partitionKey === partitionKey && (policyName === undefined || charge.policy.name === policyName)
    for (const part of this.#unconfirmed) part.charges = part.charges.filter((charge) => !isForgotten(charge))
  }

  async #addAll(node: string): Promise<boolean> {
    for (;;) {
      this.#pendingNodes.delete(node)
      const again = this.#unconfirmedAt(node)
      if (again.length === 0 && !this.#hasPending(node)) return true
      const parts = again.length > 0 ? again : this.#take(node)
      const added = inOneWrite(this.#redis, () => parts.map((part) => this.#send(part)))
      if (!this.#hasPending(node)) this.#lastSent(node)
      if ((await Promise.all(added)).includes(false)) return false
    }
  }

  async #send(part: SentPart): Promise<boolean> {
    this.#unconfirmed.add(part)
    const isAdded = await this.#addOnce(part.id, part.charges)
    if (isAdded) this.#unconfirmed.delete(part)
    return isAdded
  }

  #unconfirmedAt(node: string): SentPart[] {
    return [...this.#unconfirmed].filter(({ partitionKey }) => this.#nodes.ofClient(partitionKey) === node)
  }

  #hasPending(node: string): boolean {
    return this.#local.hasPending(this.#shardsOf(node))
  }

  #take(node: string): SentPart[] {
    const charges = this.#local.takePending(COUNTERS_IN_COMMAND, this.#shardsOf(node))
    // The mark of an addition has to be in the hash slot of its client.
    const parts = Map.groupBy(charges, ({ partitionKey }) => (this.#redis.isCluster ? partitionKey : ''))
    return Array.from(parts, ([partitionKey, part]) => ({ id: randomUUID(), partitionKey, charges: part }))
  }

  /** Returns a function that returns whether a shard is on this node; undefined if there is only one node. */
  #shardsOf(node: string): ((shard: number) => boolean) | undefined {
    return this.#redis.isCluster ? (shard) => this.#nodes.ofSlot(shard) === node : undefined
  }
}
