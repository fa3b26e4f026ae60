import type { Charge } from '../../limiter.ts'
import { slotOf } from './deciding/cluster-nodes.ts'
import type { RedisClient } from './run-script.ts'

/**
 * The servers that hold counters: the masters of a cluster, named `host:port`, or one server, whose name is empty. In a cluster, the
 * empty name is also used for slots whose master is not known, as before the first connection.
 */
export type RedisNodes = {
  /** The names of the nodes that have counters. */
  readonly names: () => ReadonlySet<string>
  readonly ofClient: (partitionKey: string) => string
  readonly ofKey: (key: string) => string
  /** The hash slot of a client's counters in a cluster. */
  readonly slotOfClient: (partitionKey: string) => number
  readonly ofSlot: (slot: number) => string
  /** Whether counters are on this node. */
  has(node: string): boolean
  /**
   * Returns a key on this node that begins with `start`, a text without braces; undefined if no key was found. A call searches for a few
   * milliseconds at most, so the fewer slots a node has, the more calls are needed.
   */
  findKey(node: string, start: string): string | undefined
  /** Calls `listener` when slots may have another master. Returns a function that stops this. */
  onMoved(listener: () => void): () => void
}

/** The only server. */
export const onlyNode = ''

const only: ReadonlySet<string> = new Set([onlyNode])

const slots = Array.from({ length: 16_384 }, (_, slot) => slot)

/** The number of hash tags that a call tries. 110,000 tags find all slots. */
const TAGS_TRIED = 4_096

/** Returns the nodes of a cluster, according to its slots at the time of each call; otherwise the only server. */
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
  // Only the text in the first braces is hashed, and the first braces of a key are those of its client.
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
