import { randomUUID } from 'node:crypto'
import type { MemoryLimiter, PendingCharge } from '../memory/limiter.ts'
import type { RedisNodes } from '../redis/nodes.ts'
import { inOneWrite, type RedisClient } from '../redis/run-script.ts'
import type { AddOnce } from '../redis/settling/repayment.ts'

/** Requests that this process has admitted while a node of Redis was away, and has to add there. */
export type Debts = {
  /** Requests were counted here, to add at these nodes as soon as they answer. */
  note(nodes: Iterable<string>): void
  /** Whether something noted must be added at this node. Costs nothing while there is nothing at all. */
  owes(node: string): boolean
  /** The nodes that have the counters of pending requests now, wherever these were when the requests were counted. */
  creditors(): ReadonlySet<string>
  /** Adds all of the node's, each once, in parts. Resolves to whether Redis has confirmed it. */
  repay(node: string): Promise<boolean>
  /** A client was reset: its counts are not to be added any more. */
  forget(policyName: string | undefined, partitionKey: string): void
}

/** Counters and times added in one command: some milliseconds of Redis's time at most. */
const COUNTERS_IN_REPAYMENT = 500

/** Sent and not confirmed. It keeps its id, so that it cannot be added twice. In a cluster it is of one client. */
type Repayment = { readonly id: string; readonly partitionKey: string; charges: readonly PendingCharge[] }

/**
 * @param options.lastSent called when the last part for a node is sent, not when it is answered: under load there is always something new
 *   to add, and later commands follow on the same connection
 */
export function createDebts(options: {
  readonly redis: RedisClient
  readonly nodes: RedisNodes
  readonly local: MemoryLimiter
  readonly addOnce: AddOnce
  readonly lastSent: (node: string) => void
}): Debts {
  const { redis, nodes, local, addOnce, lastSent } = options
  const unconfirmed = new Set<Repayment>()
  const noted = new Set<string>()
  const repaying = new Map<string, Promise<boolean>>()

  const isOf = (node: string) => (shard: number) => nodes.ofSlot(shard) === node

  function unconfirmedAt(node: string): Repayment[] {
    return [...unconfirmed].filter(({ partitionKey }) => nodes.ofClient(partitionKey) === node)
  }

  function hasPending(node: string): boolean {
    return local.hasPending(redis.isCluster ? isOf(node) : undefined)
  }

  function take(node: string): Repayment[] {
    const charges = local.takePending(COUNTERS_IN_REPAYMENT, redis.isCluster ? isOf(node) : undefined)
    // The mark of an addition has to be in the hash slot of its client.
    const parts = Map.groupBy(charges, ({ partitionKey }) => (redis.isCluster ? partitionKey : ''))
    return Array.from(parts, ([partitionKey, part]) => ({ id: randomUUID(), partitionKey, charges: part }))
  }

  async function send(repayment: Repayment): Promise<boolean> {
    unconfirmed.add(repayment)
    const isAdded = await addOnce(repayment.id, repayment.charges)
    if (isAdded) unconfirmed.delete(repayment)
    return isAdded
  }

  async function repayAll(node: string): Promise<boolean> {
    for (;;) {
      noted.delete(node)
      const again = unconfirmedAt(node)
      if (again.length === 0 && !hasPending(node)) return true
      const parts = again.length > 0 ? again : take(node)
      const added = inOneWrite(redis, () => parts.map(send))
      if (!hasPending(node)) lastSent(node)
      if ((await Promise.all(added)).includes(false)) return false
    }
  }

  return {
    note(of) {
      if (redis.isCluster) for (const node of of) noted.add(node)
    },
    owes(node) {
      if (unconfirmed.size === 0 && !local.hasPending()) return false
      return !redis.isCluster || noted.has(node)
    },
    creditors() {
      const clients = Array.from(unconfirmed, ({ partitionKey }) => nodes.ofClient(partitionKey))
      return new Set([...clients, ...Array.from(local.pendingShards(), nodes.ofSlot)])
    },
    repay(node) {
      const running = repaying.get(node)
      if (running) return running
      const started = repayAll(node).finally(() => repaying.delete(node))
      repaying.set(node, started)
      return started
    },
    forget(policyName, partitionKey) {
      for (const repayment of unconfirmed) {
        repayment.charges = repayment.charges.filter(
          (charge) =>
            charge.partitionKey !== partitionKey ||
            (policyName !== undefined && charge.policy.name !== policyName),
        )
      }
    },
  }
}
