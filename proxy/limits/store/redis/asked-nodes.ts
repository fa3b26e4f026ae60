import type { Charge } from '../../limiter.ts'
import type { AskedBatch } from '../batching.ts'
import { nodesOf, onlyNode, type RedisNodes } from './nodes.ts'
import type { RedisNode } from './run-script.ts'

/** Which nodes of a cluster batches are asked of, so that one that does not answer is told from the others. */
export type AskedNodes = {
  /** Remembers that a part of a request waits for its node, until `reply` resolves; a part that rejects stays, as failed. */
  follow<Reply>(batch: Requests, part: readonly Charge[], reply: Promise<Reply>): Promise<Reply>
  /** The nodes of a batch that was answered. */
  answering(batch: AskedBatch<RedisNode>): ReadonlySet<string>
  /** The nodes of a batch that have not answered, or not rightly. */
  failing(batch: AskedBatch<RedisNode>): ReadonlySet<string>
}

type Requests = AskedBatch['requests']

const only: ReadonlySet<string> = new Set([onlyNode])

export function createAskedNodes(nodes: RedisNodes): AskedNodes {
  /** By the requests of a batch, for each part that is not answered its node. */
  const unanswered = new WeakMap<Requests, Map<readonly Charge[], string>>()

  function nodesAsked({ requests, lane }: AskedBatch<RedisNode>): ReadonlySet<string> {
    if (lane) return new Set([`${lane.options.host}:${lane.options.port}`])
    return nodesOf(nodes, requests.flat())
  }

  return {
    async follow(batch, part, reply) {
      const parts = unanswered.get(batch) ?? new Map<readonly Charge[], string>()
      unanswered.set(batch, parts)
      parts.set(part, nodes.ofClient(part[0]?.partitionKey ?? ''))
      const answer = await reply
      parts.delete(part)
      return answer
    },
    answering: nodesAsked,
    failing(batch) {
      const parts = unanswered.get(batch.requests)
      return parts && parts.size > 0 ? new Set(parts.values()) : nodesAsked(batch)
    },
  }
}

/** Where there is one node. */
export const askedOnly: AskedNodes = {
  follow: (_batch, _part, reply) => reply,
  answering: () => only,
  failing: () => only,
}
