import type { Log } from '../../../../shared/log.ts'
import type { Telemetry } from '../../../telemetry/telemetry.ts'
import type { MemoryLimiter } from '../memory/limiter.ts'
import { lacksRight } from '../redis/errors.ts'
import type { RedisLimiter } from '../redis/limiter.ts'
import { onlyNode, type RedisNodes } from '../redis/nodes.ts'
import { onConnected, type RedisClient, type RedisNode } from '../redis/run-script.ts'
import { PendingRequests } from './pending-requests.ts'
import { NodeBreakers } from './node-breakers.ts'

export type NodeOutageOptions = {
  readonly redis: RedisClient
  readonly nodes: RedisNodes
  /** The limiter that asks the nodes. */
  readonly shared: RedisLimiter
  /** The limiter that has the pending counts of requests admitted while nodes were unavailable. */
  readonly local: MemoryLimiter
  /**
   * Forgets the local counts of clients that were reset meanwhile, before the other counts are added to a node. `isReached` returns
   * whether the node of a key can be asked.
   */
  readonly forgetResets: (isReached: (key: string) => boolean) => Promise<void>
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  readonly log: Log
  readonly telemetry: Pick<Telemetry, 'breakerChanged'>
}

/**
 * Tracks which Redis nodes are unavailable, and brings them back. A node is unavailable once its circuit breaker has opened: after
 * consecutive failures, or at once if it refuses a command that decisions need. From then on, `#recover` is tried until the node decides a
 * test request, knows the requests in flight, and has been sent the pending requests. Then the circuit breaker closes.
 */
export class NodeOutages {
  readonly breakers: NodeBreakers
  readonly pending: PendingRequests
  readonly #options: NodeOutageOptions
  /** Nodes that have decided a probe since their breaker opened. At other nodes, pending requests sent before an outage do not end it. */
  readonly #answeringAgain = new Set<string>()
  readonly #stopListening: readonly (() => void)[]
  /** The nodes that had counters when slots were last learned. */
  #withCounters: ReadonlySet<string>
  #isChecking = false

  constructor(options: NodeOutageOptions) {
    const { redis, nodes, shared, local, now, log, telemetry } = options
    this.#options = options
    this.breakers = new NodeBreakers({
      recover: (node) => this.#recover(node),
      opened: (node) => this.#opened(node),
      now,
      log,
      telemetry,
    })
    this.pending = new PendingRequests({
      redis,
      nodes,
      local,
      addOnce: shared.addOnce,
      lastSent: (node) => {
        if (this.#answeringAgain.has(node)) this.#close(node)
      },
    })
    this.#withCounters = nodes.names()
    redis.on('ready', this.#checkAll)
    if (redis.status === 'ready') this.#checkAll()
    this.#stopListening = [
      () => redis.off('ready', this.#checkAll),
      // A cluster is ready as soon as one of its nodes is.
      ...(redis.isCluster ? [onConnected(redis, (server) => this.#nodeConnected(server))] : []),
      nodes.onMoved(() => this.#moved()),
    ]
  }

  /** Records that these nodes have answered. */
  answered(nodes: Iterable<string>): void {
    for (const node of nodes) {
      this.breakers.succeeded(node)
      if (this.breakers.isOpen(node)) continue
      this.#options.shared.sendInFlight(node)
      if (this.pending.hasPendingAt(node)) void this.#addPending(node)
    }
  }

  /** Records that these nodes have not answered, or have answered with an error. */
  failed(reason: string, nodes: Iterable<string>): void {
    for (const node of nodes) {
      this.breakers.failed(node, reason)
      // Only some requests need the command. Other requests succeed in between and would keep the circuit breaker closed.
      if (!this.breakers.isOpen(node) && lacksRight(reason)) void this.#isRefused(node)
    }
  }

  /** Checks the rights at all nodes, once for all calls of one turn. */
  checkRights(): void {
    if (this.#isChecking) return
    this.#isChecking = true
    // After the command of the requests whose policies need the rights.
    setImmediate(() => {
      this.#isChecking = false
      this.#checkAll()
    })
  }

  close(): void {
    for (const stop of this.#stopListening) stop()
    this.breakers.stop()
  }

  /** Rights are checked on each new connection, rather than after three failed decisions. */
  readonly #checkAll = (): void => {
    for (const node of this.#options.nodes.names()) void this.#isRefused(node)
  }

  #nodeConnected({ options: { host, port } }: RedisNode): void {
    const node = `${host}:${port}`
    // Replicas decide nothing.
    if (this.#options.nodes.has(node)) void this.#isRefused(node)
  }

  #opened(node: string): void {
    this.#answeringAgain.delete(node)
    this.#options.shared.giveUp(node)
  }

  async #recover(node: string): Promise<void> {
    const { nodes, shared, forgetResets } = this.#options
    if (!nodes.has(node)) {
      this.#moved()
      return
    }
    if (await this.#isRefused(node)) return
    if (!(await shared.probe(node))) return
    await forgetResets((key) => nodes.ofKey(key) === node || !this.breakers.isOpen(nodes.ofKey(key)))
    await shared.renewInFlight(node)
    this.#answeringAgain.add(node)
    if (!(await this.#addPending(node))) return
    this.#close(node)
  }

  /** Requests may have been admitted since the requests in flight were renewed. */
  #close(node: string): void {
    if (this.breakers.isOpen(node)) this.#options.shared.sendInFlight(node)
    this.breakers.close(node)
  }

  /**
   * Slots may have moved to other nodes. Requests that were admitted while the old nodes were unavailable are added to the new nodes,
   * before these decide about the next request. The rights at a replica that was promoted have not been checked yet.
   */
  #moved(): void {
    const { nodes, redis } = this.#options
    const before = this.#withCounters
    this.#withCounters = nodes.names()
    for (const node of this.#withCounters) if (!before.has(node)) void this.#isRefused(node)
    for (const node of this.breakers.openNodes())
      if (!nodes.has(node)) this.breakers.close(node, node !== onlyNode)
    const nodesOfPending = this.pending.nodes()
    this.pending.add(nodesOfPending)
    if (redis.status !== 'ready') return
    for (const node of nodesOfPending) if (!this.breakers.isOpen(node)) void this.#addPending(node)
  }

  /**
   * Whether the node refuses a command that decisions need, such as one that its ACL denies. If so, opens the circuit
   * breaker.
   */
  async #isRefused(node: string): Promise<boolean> {
    const refusal = await this.#options.shared.findRefusal(node)
    if (!refusal) return false
    const { command, reply } = refusal
    this.breakers.open(node, command === undefined ? reply : `${reply} (${command})`, reply)
    return true
  }

  async #addPending(node: string): Promise<boolean> {
    const isAdded = await this.pending.addAt(node)
    if (!isAdded && !(await this.#isRefused(node)) && !this.breakers.isOpen(node))
      this.breakers.open(node, 'could not add the requests admitted during the outage')
    return isAdded
  }
}
