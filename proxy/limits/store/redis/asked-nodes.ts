import type { Charge } from '../../limiter.ts'
import type { AskedBatch } from '../remote-counters.ts'
import { isMoving } from './errors.ts'
import { nodesOf, onlyNode, type RedisNodes } from './nodes.ts'
import type { RedisNode } from './run-script.ts'

/** Which nodes of a cluster batches are asked of, so that one that does not answer is told from the others. */
export type AskedNodes = {
  /** Remembers that a part of a request waits for its node, until `reply` is settled. A part that rejects has failed, unless its slots have moved. */
  follow<Reply>(batch: Requests, part: readonly Charge[], reply: Promise<Reply>): Promise<Reply>
  /** The nodes of a batch that was answered. */
  answering(batch: AskedBatch<RedisNode>): ReadonlySet<string>
  /** The nodes of a batch that have not answered, or not rightly. */
  failing(batch: AskedBatch<RedisNode>): ReadonlySet<string>
}

type Requests = AskedBatch['requests']

type Followed = { readonly unanswered: Map<readonly Charge[], string>; readonly failed: Set<string> }

const only: ReadonlySet<string> = new Set([onlyNode])

export function createAskedNodes(nodes: RedisNodes): AskedNodes {
  /** By the requests of a batch: for each part that is not answered its node, and the nodes that have failed. */
  const followed = new WeakMap<Requests, Followed>()

  function nodesAsked({ requests, lane }: AskedBatch<RedisNode>): ReadonlySet<string> {
    if (lane) return new Set([`${lane.options.host}:${lane.options.port}`])
    return nodesOf(nodes, requests.flat())
  }

  return {
    async follow(batch, part, reply) {
      const { unanswered, failed } = followed.get(batch) ?? { unanswered: new Map(), failed: new Set() }
      followed.set(batch, { unanswered, failed })
      const node = nodes.ofClient(part[0]?.partitionKey ?? '')
      unanswered.set(part, node)
      try {
        return await reply
      } catch (error) {
        // Another node has these counters now, and is asked.
        if (!isMoving(error)) failed.add(node)
        throw error
      } finally {
        unanswered.delete(part)
      }
    },
    answering: nodesAsked,
    failing(batch) {
      const { unanswered, failed } = followed.get(batch.requests) ?? {}
      // While one has failed, others may not have had the time to answer.
      if (failed && failed.size > 0) return failed
      return unanswered && unanswered.size > 0 ? new Set(unanswered.values()) : nodesAsked(batch)
    },
  }
}

/** Where there is one node. */
export const askedOnly: AskedNodes = {
  follow: (_batch, _part, reply) => reply,
  answering: () => only,
  failing: () => only,
}
