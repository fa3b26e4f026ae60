import type { Charge } from '../../../limiter.ts'
import type { AskedBatch } from '../../remote-counters.ts'
import { isMoving, isOfOneCounter } from '../errors.ts'
import { nodesOf, onlyNode, type RedisNodes } from '../nodes.ts'
import type { RedisNode } from '../run-script.ts'

/** Records to which nodes of a cluster batches were sent, to distinguish a node that does not answer from the others. */
export type AskedNodes = {
  /**
   * Records that a part of a request waits for its node, until `reply` is settled. The node counts as failing if `reply` rejects, unless
   * slots have moved; or if the values of `reply` say that the part could not be decided, unless only its key is broken.
   */
  follow<Reply extends readonly unknown[]>(
    batch: Requests,
    part: readonly Charge[],
    reply: Promise<Reply>,
  ): Promise<Reply>
  /** The nodes of a batch that was answered. */
  answering(batch: AskedBatch<RedisNode>): ReadonlySet<string>
  /** The nodes of a batch that have not answered, or have answered with an error. */
  failing(batch: AskedBatch<RedisNode>): ReadonlySet<string>
}

type Requests = AskedBatch['requests']

/** The node of each unanswered part; and the nodes that have rejected a part, or could not decide it. */
type Followed = {
  readonly unanswered: Map<readonly Charge[], string>
  readonly rejecting: Set<string>
  readonly undecided: Set<string>
}

const only: ReadonlySet<string> = new Set([onlyNode])

/** Keeps the records of a batch for as long as the batch exists. */
export function createAskedNodes(nodes: RedisNodes): AskedNodes {
  const followed = new WeakMap<Requests, Followed>()

  function partsOf(batch: Requests): Followed {
    const known = followed.get(batch)
    if (known) return known
    const parts: Followed = { unanswered: new Map(), rejecting: new Set(), undecided: new Set() }
    followed.set(batch, parts)
    return parts
  }

  function nodesAsked({ requests, lane }: AskedBatch<RedisNode>): ReadonlySet<string> {
    if (lane) return new Set([`${lane.options.host}:${lane.options.port}`])
    return nodesOf(nodes, requests.flat())
  }

  return {
    async follow(batch, part, reply) {
      const { unanswered, rejecting, undecided } = partsOf(batch)
      const node = nodes.ofClient(part[0]?.partitionKey ?? '')
      unanswered.set(part, node)
      try {
        const values = await reply
        if (isUndecided(values)) undecided.add(node)
        return values
      } catch (error) {
        // Another node has these counters now, and is asked.
        if (!isMoving(error)) rejecting.add(node)
        throw error
      } finally {
        unanswered.delete(part)
      }
    },
    answering: nodesAsked,
    failing(batch) {
      const { unanswered, rejecting, undecided } = followed.get(batch.requests) ?? nothingFollowed
      // A node that rejects ends the request: other nodes may not have had the time to answer.
      const failed = new Set(rejecting.size > 0 ? rejecting : unanswered.values()).union(undecided)
      return failed.size > 0 ? failed : nodesAsked(batch)
    },
  }
}

const nothingFollowed: Followed = { unanswered: new Map(), rejecting: new Set(), undecided: new Set() }

/** Whether the reply to a part of a request has an error in place of its values. */
function isUndecided([left]: readonly unknown[]): boolean {
  return typeof left !== 'number' && !isOfOneCounter(left)
}

/** For a Redis that is a single node. */
export const askedOnly: AskedNodes = {
  follow: (_batch, _part, reply) => reply,
  answering: () => only,
  failing: () => only,
}
