import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { slotOf } from '../../proxy/limits/store/redis/deciding/cluster-nodes.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed } from '../support/limiter/decisions.ts'
import { startRedisCluster, type RedisCluster } from '../support/redis/redis-cluster.ts'
import { openAnsweringLimiter } from '../support/redis/redis-limiters.ts'

/* Requests that arrive together share one command for each node of a cluster, no matter which slots their counters are in. */

const narrow = makePolicy('narrow', 3, 600_000)
const wide = makePolicy('wide', 1000, 600_000)
const sliding = makePolicy('sliding', 5, 600_000, { algorithm: 'sliding' })
const inFlight = makePolicy('in-flight', 2, 15_000, { algorithm: 'concurrency' })

let cluster: RedisCluster

beforeAll(async () => {
  cluster = await startRedisCluster(3, 0)
})
afterAll(() => cluster.close())

async function countCommands(): Promise<number[]> {
  const texts = await Promise.all(cluster.nodes.map(({ operator }) => operator.info('commandstats')))
  return texts.map((text) => Number(/cmdstat_evalsha:calls=(\d+)/.exec(text)?.[1] ?? 0))
}

test('one command for each node decides all requests of a turn, under rules of any kind', async () => {
  const limiter = await openAnsweringLimiter(cluster.url, 5_000)
  for (const policies of [[narrow], [narrow, wide], [narrow, sliding, inFlight]]) {
    const clients = Array.from({ length: 60 }, newClient)
    const before = await countCommands()
    const decisions = await Promise.all(
      [...clients, ...clients, ...clients, ...clients]
        .slice(0, 200)
        .map(async (client) => limiter.decide(chargeAll(client, policies))),
    )
    const commands = (await countCommands()).map((count, i) => count - (before[i] ?? 0))
    // 200 requests with up to three charges each, and at most 256 charges in a command.
    expect(commands.every((count) => count >= 1 && count <= 2)).toBe(true)
    const quota = Math.min(...policies.map((policy) => policy.quota))
    expect(countAllowed(decisions)).toBe(60 * Math.min(quota, 3))
  }
  expect(limiter.telemetry).toMatchObject({ failures: 0 })
})

test('requests with counters on several nodes are decided beside them', async () => {
  const limiter = await openAnsweringLimiter(cluster.url, 5_000)
  const clients = Array.from({ length: 40 }, newClient)
  const ask = (): Promise<unknown>[] =>
    clients.map(async (client, i) =>
      limiter.decide([...chargeAll(client, [narrow]), ...chargeAll(`all-${i % 2}`, [wide])]),
    )
  for (let round = 0; round < 3; round++) await Promise.all(ask())
  const decisions = await Promise.all(
    ['all-0', 'all-1'].map(async (client) => limiter.decide(chargeAll(client, [wide]))),
  )
  expect(decisions).toMatchObject(Array(2).fill({ states: [{ remaining: wide.quota - 61 }] }))
})

test('a slot that has moved is found by the requests that share a command with others', async () => {
  const [one, other] = cluster.nodes
  if (!one || !other) throw new RangeError('three nodes')
  const limiter = await openAnsweringLimiter(cluster.url, 5_000)
  const clients = Array.from({ length: 60 }, newClient)
  const ask = async (): Promise<number> =>
    countAllowed(
      await Promise.all(clients.map(async (client) => limiter.decide(chargeAll(client, [narrow, wide])))),
    )
  expect(await ask()).toBe(60)
  const slots = new Set(clients.map((client) => slotOf(`sluice:1:{${client}}:`)))
  const moved = [...slots].filter((slot) => slot < 5461).slice(0, 8)
  expect(moved.length).toBeGreaterThan(3)
  for (const [at, slot] of moved.entries()) {
    await other.operator.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', one.id)
    await one.operator.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', other.id)
    const keys = await one.operator.cluster('GETKEYSINSLOT', slot, 10)
    // Some slots have moved only some of their keys, others have moved all keys, and the move of others is complete.
    const gone = keys.slice(0, at % 3 === 0 ? 1 : keys.length)
    await one.operator.migrate('127.0.0.1', other.port, '', 0, 1000, 'KEYS', ...gone)
    if (at % 3 === 2)
      for (const { operator } of [other, one])
        await operator.call('CLUSTER', 'SETSLOT', slot, 'NODE', other.id)
  }
  expect(await ask()).toBe(60)
  expect(await ask()).toBe(60)
  expect(await ask()).toBe(0)
  expect(limiter.telemetry).toMatchObject({ failures: 0 })
})

test('the slot of a key is the one that Redis computes', async () => {
  const [node] = cluster.nodes
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom('{', '}', 'a', 'ü', ':') }),
  )
  await fc.assert(
    fc.asyncProperty(text, async (key) => {
      expect(slotOf(key)).toBe(await node?.operator.cluster('KEYSLOT', key))
    }),
    { numRuns: 300 },
  )
})
