import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MemoryLimiter, type PendingCharge } from '../../../../proxy/limits/store/memory/limiter.ts'
import { PendingRequests } from '../../../../proxy/limits/store/outage/pending-requests.ts'
import type { RedisNodes } from '../../../../proxy/limits/store/redis/nodes.ts'
import type { RedisClient } from '../../../../proxy/limits/store/redis/run-script.ts'
import { chargeAll, makePolicy } from '../../../support/limiter/charges.ts'

/*
 * Requests admitted without a node are added once, to the node that has the client's counters by then, no matter how often nodes fail, lose
 * answers and hand over slots. No other node receives them.
 */

const policies = [
  makePolicy('fixed', 1_000, 600_000),
  makePolicy('sliding', 1_000, 600_000, { algorithm: 'sliding' }),
]
const shardOf = (client: string): number => Number(client.slice(1))
const CLIENTS = 6

function createScene() {
  const nodeOfShard = Array.from({ length: CLIENTS }, (_, shard) => `node ${shard % 3}`)
  const ofSlot = (shard: number): string => nodeOfShard[shard] ?? ''
  const nodes = { ofSlot, ofClient: (client: string) => ofSlot(shardOf(client)) } as RedisNodes
  const local = new MemoryLimiter({ maxKeys: 100, seed: 1, now: () => 1_000, shardOf })
  const added = new Map<string, number>()
  const done = new Set<string>()
  const asked: string[] = []
  const closed: string[] = []
  let fate: 'added' | 'lost' | 'answer lost' = 'added'
  const addOnce = (id: string, charges: readonly PendingCharge[]): Promise<boolean> => {
    for (const { partitionKey } of charges) asked.push(nodes.ofClient(partitionKey))
    if (fate === 'lost') return Promise.resolve(false)
    if (!done.has(id))
      for (const { policy, partitionKey, counted } of charges) {
        const key = `${partitionKey} ${policy.name}`
        const units = policy.algorithm === 'sliding' ? counted.length : (counted[0] ?? 0)
        added.set(key, (added.get(key) ?? 0) + units)
      }
    done.add(id)
    return Promise.resolve(fate === 'added')
  }
  const redis = { isCluster: true, status: 'end' } as RedisClient
  const pending = new PendingRequests({ redis, nodes, local, addOnce, lastSent: (node) => closed.push(node) })
  return {
    pending,
    local,
    added,
    asked,
    closed,
    nodeOfShard,
    setFate: (next: typeof fate) => void (fate = next),
    nodeOf: nodes.ofClient,
  }
}

const node = fc.integer({ min: 0, max: 2 }).map((number) => `node ${number}`)
const step = fc.oneof(
  fc.record({ kind: fc.constant('admit'), client: fc.nat(CLIENTS - 1), policy: fc.nat(1) }),
  fc.record({ kind: fc.constant('add'), node, fate: fc.constantFrom('added', 'lost', 'answer lost') }),
  fc.record({ kind: fc.constant('move'), shard: fc.nat(CLIENTS - 1), node }),
)

test('requests admitted without nodes are added once, in any order of outages and moves', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const scene = createScene()
      const { pending, local, added, asked, nodeOfShard, setFate } = scene
      const admitted = new Map<string, number>()
      for (const each of steps) {
        if ('client' in each) {
          const policy = policies[each.policy] ?? makePolicy('none', 1, 1)
          local.decidePendingSync(chargeAll(`c${each.client}`, [policy]))
          const key = `c${each.client} ${policy.name}`
          admitted.set(key, (admitted.get(key) ?? 0) + 1)
        } else if ('shard' in each) nodeOfShard[each.shard] = each.node
        else {
          asked.length = 0
          setFate(each.fate)
          const isAdded = await pending.addAt(each.node)
          expect(new Set([...asked, each.node])).toEqual(new Set([each.node]))
          expect(isAdded).toBe(asked.length === 0 || each.fate === 'added')
          if (isAdded) expect([...pending.nodes()]).not.toContain(each.node)
        }
      }
      setFate('added')
      for (const each of pending.nodes()) expect(await pending.addAt(each)).toBe(true)
      expect(pending.nodes().size).toBe(0)
      expect(added).toEqual(admitted)
    }),
    { numRuns: 300 },
  )
})

test('a node does not get requests that were admitted without another one, and the last part is announced', async () => {
  const { pending, local, closed, nodeOf } = createScene()
  local.decidePendingSync(chargeAll('c0', policies))
  pending.add([nodeOf('c0')])
  expect([pending.hasPendingAt('node 0'), pending.hasPendingAt('node 1')]).toEqual([true, false])
  await pending.addAt('node 1')
  expect(closed).toEqual([])
  await pending.addAt('node 0')
  expect(closed).toEqual(['node 0'])
  expect(pending.hasPendingAt('node 0')).toBe(false)
})

test('a client that was reset is not added, nor its requests that were sent before and not confirmed', async () => {
  const { pending, local, added, setFate } = createScene()
  local.decidePendingSync(chargeAll('c0', policies))
  setFate('lost')
  await pending.addAt('node 0')
  pending.forget('fixed', 'c0')
  setFate('added')
  await pending.addAt('node 0')
  expect(added).toEqual(new Map([['c0 sliding', 1]]))
})
