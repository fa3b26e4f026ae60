import { expect, test } from 'vitest'
import type { Charge } from '../../../../../../proxy/limits/limiter.ts'
import type { RedisNode } from '../../../../../../proxy/limits/store/redis/run-script.ts'
import { createAskedNodes } from '../../../../../../proxy/limits/store/redis/deciding/asked-nodes.ts'
import type { RedisNodes } from '../../../../../../proxy/limits/store/redis/nodes.ts'
import { makePolicy } from '../../../../../support/limiter/charges.ts'

const policy = makePolicy('p', 5, 60_000)
const charge = (partitionKey: string): Charge => ({ policy, partitionKey })
/** Each client is on the node with its name. */
const asked = createAskedNodes({ ofClient: (client: string) => client } as RedisNodes)

function ask(replies: Readonly<Record<string, Promise<readonly unknown[]>>>): {
  readonly batch: { readonly requests: readonly (readonly Charge[])[]; readonly lane: RedisNode | undefined }
  readonly settled: Promise<unknown>[]
} {
  const requests = [Object.keys(replies).map(charge)]
  const settled = Object.entries(replies).map(([client, reply]) =>
    asked.follow(requests, [charge(client)], reply).catch(() => undefined),
  )
  return { batch: { requests, lane: undefined }, settled }
}

const decided = Promise.resolve([4, 60_000])
const never = new Promise<readonly unknown[]>(() => undefined)

test('a node that fails at once is not confused with others that have not answered yet', async () => {
  const { batch, settled } = ask({ a: Promise.reject(new Error('connection lost')), b: never })
  await settled[0]
  expect([...asked.failing(batch)]).toEqual(['a'])
})

test('batches that were not answered in time count as failures of all their nodes, except those that answered', async () => {
  const { batch, settled } = ask({ a: decided, b: never, c: never })
  await settled[0]
  expect([...asked.failing(batch)]).toEqual(['b', 'c'])
})

test('a node whose slots have moved has not failed', async () => {
  const { batch, settled } = ask({
    a: Promise.reject(new Error('Too many Cluster redirections. Last error: MOVED 1')),
    b: never,
  })
  await settled[0]
  expect([...asked.failing(batch)]).toEqual(['b'])
})

test('an error inside the reply of one node blames none of the others, which have answered', async () => {
  const { batch, settled } = ask({
    a: decided,
    b: Promise.resolve(['-OOM command not allowed when used memory > maxmemory', 0]),
    c: decided,
  })
  await Promise.all(settled)
  expect([...asked.failing(batch)]).toEqual(['b'])
})

test('a node that does not answer has failed beside one whose reply is an error', async () => {
  const { batch, settled } = ask({ a: Promise.resolve(['NOPERM no rights', 0]), b: never })
  await settled[0]
  expect([...asked.failing(batch)].toSorted()).toEqual(['a', 'b'])
})

test('a node with a key that does not hold a counter has answered', async () => {
  const { batch, settled } = ask({ a: Promise.resolve(['WRONGTYPE Operation against a key', 0]), b: never })
  await settled[0]
  expect([...asked.failing(batch)]).toEqual(['b'])
})
