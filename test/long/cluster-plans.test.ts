import { afterAll, beforeAll, expect, test } from 'vitest'
import { slotOf } from '../../proxy/limits/store/redis/deciding/cluster-nodes.ts'
import type { Decision } from '../../proxy/limits/limiter.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { startRedisCluster, type RedisCluster } from '../support/redis/redis-cluster.ts'
import { openAnsweringLimiter } from '../support/redis/redis-limiters.ts'

/* In a cluster, the plan of a client is on the node of its counters, even while the counters move to another node. */

const plans = { quotas: { free: 2, pro: 4 } }
const fixed = makePolicy('fixed', 1, 600_000, { plans })
const bucket = makePolicy('bucket', 1, 600_000, { algorithm: 'token-bucket', plans })
const flight = makePolicy('flight', 1, 15_000, { algorithm: 'concurrency', plans })
const usual = makePolicy('usual', 1000, 600_000)

let cluster: RedisCluster

beforeAll(async () => {
  cluster = await startRedisCluster(3, 0)
})
afterAll(() => cluster.close())

function quotas(decision: Decision): unknown {
  return decision.outcome === 'unavailable' || 'withoutStore' in decision
    ? 'unavailable'
    : [decision.outcome, ...decision.states.map(({ policy }) => policy.quota)]
}

/** The owner of a plan under these rules, all of which count by address. */
const ownerOf = (partitionKey: string) => ({ partitionKey, keyName: 'ip' })
const nameOf = (i: number): string | undefined => ['free', 'pro', 'gold', undefined][i % 4]
const quotaOf = (i: number): number => [2, 4, 1, 1][i % 4] ?? 0

test('requests of all nodes count under the plans of their clients', async () => {
  const limiter = await openAnsweringLimiter(cluster.url, 5_000)
  const clients = Array.from({ length: 60 }, newClient)
  for (const [i, client] of clients.entries()) await limiter.plans.set(ownerOf(client), nameOf(i))
  const rules = [fixed, bucket, flight, usual]
  for (let asked = 0; asked < 5; asked++) {
    const decisions = await Promise.all(
      clients.map(async (client) => limiter.decide(chargeAll(client, rules))),
    )
    expect(decisions.map(quotas)).toEqual(
      clients.map((_, i) => [
        asked < quotaOf(i) ? 'allowed' : 'refused',
        quotaOf(i),
        quotaOf(i),
        quotaOf(i),
        1000,
      ]),
    )
  }
  expect(await limiter.plans.list(1000)).toMatchObject({ isAll: true, plans: { length: 45 } })
  expect(await limiter.plans.list(40)).toMatchObject({ isAll: false, plans: { length: 40 } })
  expect(limiter.telemetry).toMatchObject({ failures: 0 })
})

test('a request with counters on several nodes counts under the plans of each', async () => {
  const limiter = await openAnsweringLimiter(cluster.url, 5_000)
  const clients = Array.from({ length: 40 }, newClient)
  const others = clients.map((client) => `other ${client}`)
  for (const [i, client] of clients.entries()) await limiter.plans.set(ownerOf(client), nameOf(i))
  for (const other of others) await limiter.plans.set(ownerOf(other), 'pro')
  const ask = async (i: number) =>
    limiter.decide([...chargeAll(clients[i] ?? '', [flight, fixed]), ...chargeAll(others[i] ?? '', [bucket])])
  for (let asked = 0; asked < 5; asked++) {
    const decisions = await Promise.all(clients.map((_, i) => ask(i)))
    expect(decisions.map(quotas)).toEqual(
      clients.map((_, i) => [asked < quotaOf(i) ? 'allowed' : 'refused', quotaOf(i), quotaOf(i), 4]),
    )
  }
  // Units that one rule counted for a request that another rule refused have been given back.
  const states = await Promise.all(others.map((other) => limiter.inspect(chargeAll(other, [bucket]))))
  expect(states.flat().map(({ used }) => used)).toEqual(clients.map((_, i) => quotaOf(i)))
})

test('while a slot moves, a plan may be on the other node than the counter', async () => {
  const [one, other] = cluster.nodes
  if (!one || !other) throw new RangeError('three nodes')
  const limiter = await openAnsweringLimiter(cluster.url, 5_000)
  const clients: string[] = []
  while (clients.length < 12) {
    const client = newClient()
    if (slotOf(`sluice:1:{${client}}:`) < 5461) clients.push(client)
  }
  for (const [i, client] of clients.entries()) await limiter.plans.set(ownerOf(client), nameOf(i))
  const ask = () => Promise.all(clients.map(async (client) => limiter.decide(chargeAll(client, [fixed]))))
  expect((await ask()).map(quotas)).toEqual(clients.map((_, i) => ['allowed', quotaOf(i)]))
  for (const [i, client] of clients.entries()) {
    const slot = slotOf(`sluice:1:{${client}}:`)
    await other.operator.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', one.id)
    await one.operator.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', other.id)
    const moved = [`sluice:1:{${client}}:plan:ip`, `sluice:1:{${client}}:fixed:600000`].slice(0, 1 + (i % 2))
    await one.operator.migrate('127.0.0.1', other.port, '', 0, 1000, 'KEYS', ...moved)
  }
  for (let asked = 1; asked < 5; asked++)
    expect((await ask()).map(quotas)).toEqual(
      clients.map((_, i) => [asked < quotaOf(i) ? 'allowed' : 'refused', quotaOf(i)]),
    )
  expect(limiter.telemetry).toMatchObject({ failures: 0 })
})
