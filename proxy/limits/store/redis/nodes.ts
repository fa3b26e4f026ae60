import type { Charge } from '../../limiter.ts'
import { slotOf } from './deciding/cluster-nodes.ts'
import type { RedisClient } from './run-script.ts'

/**
 * The servers that counters are on: the masters of a cluster by `host:port`, or one server, whose name is empty. Empty is also the
 * name in a cluster for slots of which no master is known, as before the first connection.
 */
export type RedisNodes = {
  /** The names of those that have counters. */
  readonly names: () => ReadonlySet<string>
  readonly ofClient: (partitionKey: string) => string
  readonly ofKey: (key: string) => string
  /** The hash slot of a client's counters in a cluster. */
  readonly slotOfClient: (partitionKey: string) => number
  readonly ofSlot: (slot: number) => string
  /** Whether counters are on this node. */
  has(node: string): boolean
  /**
   * A key on this node that begins with a text without braces; undefined if none was found. It looks for a few milliseconds at most:
   * the fewer slots a node has, the more calls it takes.
   */
  findKey(node: string, start: string): string | undefined
  /** Calls back when slots may have another master. Returns how to stop that. */
  onMoved(listener: () => void): () => void
}

/** The only server. */
export const onlyNode = ''

const only: ReadonlySet<string> = new Set([onlyNode])

const slots = Array.from({ length: 16_384 }, (_, slot) => slot)

/** Hash tags that are tried in a call. All slots are found with 110,000. */
const TAGS_TRIED = 4_096

/** The nodes of a cluster, as its slots are at the time of each call; otherwise the only server. */
export function createRedisNodes(redis: RedisClient): RedisNodes {
  if (!('nodes' in redis))
    return {
      names: () => only,
      has: (node) => node === onlyNode,
      ofClient: () => onlyNode,
      ofKey: () => onlyNode,
      slotOfClient: () => 0,
      ofSlot: () => onlyNode,
      findKey: (_, start) => start,
      onMoved: () => () => undefined,
    }
  /** By slot. */
  const tags = new Map<number, string>()
  let tried = 0
  const ofSlot = (slot: number): string => redis.slots[slot]?.[0] ?? onlyNode
  // Only the text in braces is hashed, and no key begins with other braces than those of its client.
  const slotOfClient = (partitionKey: string): number => slotOf(`{${partitionKey}}`)
  const ofKey = (key: string): string => ofSlot(slotOf(key))

  return {
    names: () => new Set(slots.map(ofSlot)),
    ofClient: (partitionKey) => ofSlot(slotOfClient(partitionKey)),
    ofKey,
    slotOfClient,
    ofSlot,
    has: (node) => slots.some((slot) => ofSlot(slot) === node),
    findKey(node, start) {
      for (const [slot, tag] of tags) if (ofSlot(slot) === node) return start + tag
      for (const until = tried + TAGS_TRIED; tried < until; tried++) {
        const slot = slotOf(`{${tried}}`)
        if (tags.has(slot)) continue
        tags.set(slot, `{${tried}}`)
        if (ofSlot(slot) === node) return `${start}{${tried}}`
      }
      return undefined
    },
    onMoved(listener) {
      redis.on('refresh', listener)
      redis.on('ready', listener)
      return () => {
        redis.off('refresh', listener)
        redis.off('ready', listener)
      }
    },
  }
}

/** The names of the nodes that have the counters of a request. */
export function nodesOf(nodes: RedisNodes, charges: readonly Charge[]): ReadonlySet<string> {
  return new Set(charges.map(({ partitionKey }) => nodes.ofClient(partitionKey)))
}
