import { Cluster } from 'ioredis'
import { expect, test } from 'vitest'
import { LEASE_MS } from '../../proxy/limits/algorithms/concurrency/concurrency.ts'
import type { Decision } from '../../proxy/limits/limiter.ts'
import { slotOf } from '../../proxy/limits/store/redis/deciding/cluster-nodes.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce, reservationsOf } from '../support/limiter/decisions.ts'
import { waitUntilAnswering, type RunningLimiter } from '../support/limiter/limiters.ts'
import { startRedisCluster, type ClusterNode, type RedisCluster } from '../support/redis/redis-cluster.ts'
import { closeAfterTest, openAnsweringLimiter } from '../support/redis/redis-limiters.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * One master of a cluster fails. Clients of the other nodes must not notice: they are admitted as before, and wait no longer. For its own
 * clients `onStoreError` applies, and the requests admitted by that are added once, to the node that has the slots afterwards.
 */

const login = makePolicy('login', 5, 60_000)
const strict = makePolicy('strict', 5, 60_000, { onStoreError: 'closed' })
const lenient = makePolicy('lenient', 5, 60_000, { onStoreError: 'open' })
const burst = makePolicy('burst', 5, 60_000, { algorithm: 'sliding' })
const exports = makePolicy('exports', 3, LEASE_MS, { algorithm: 'concurrency' })

type Scene = {
  readonly cluster: RedisCluster
  readonly first: RunningLimiter
  readonly second: RunningLimiter
  readonly failing: ClusterNode
  readonly name: string
  /** A new client whose counters are on the failing node (`there`) or on another (`elsewhere`). */
  readonly client: (where: 'there' | 'elsewhere') => string
  readonly count: (client: string, suffix?: string) => Promise<string | null>
}

async function openScene(replicas: number): Promise<Scene> {
  const cluster = closeAfterTest(await startRedisCluster(3, replicas))
  for (const { operator } of cluster.nodes)
    await operator.config('SET', 'cluster-require-full-coverage', 'no')
  const [first, second] = await Promise.all([
    openAnsweringLimiter(cluster.url),
    openAnsweringLimiter(cluster.url),
  ])
  const [failing] = cluster.nodes
  const { client: connections } = first.connection
  if (!(connections instanceof Cluster) || !failing) throw new TypeError('no cluster')
  const name = `127.0.0.1:${failing.port}`
  const isThere = (client: string): boolean => connections.slots[slotOf(`{${client}}`)]?.[0] === name
  const nodeOfSlot = new Map(
    Array.from({ length: 300 }, newClient).map((client) => [client, isThere(client)] as const),
  )
  return {
    cluster,
    first,
    second,
    failing,
    name,
    client(where) {
      for (const [client, there] of nodeOfSlot) {
        if (there !== (where === 'there')) continue
        nodeOfSlot.delete(client)
        return client
      }
      throw new Error('no client left')
    },
    count: (client, suffix = 'login:60000') => connections.get(`sluice:1:{${client}}:${suffix}`),
  }
}

/** Asks for one client of the failing node after another until the limiter no longer waits for the node. */
async function untilOpen({ first, name, client }: Scene): Promise<void> {
  await eventually('the node is given up', async () => {
    if (!first.unavailableNodes?.().includes(name)) await first.decide(chargeAll(client('there'), [login]))
    return first.unavailableNodes?.().includes(name) === true
  })
}

const isWithoutRedis = (decision: Decision): boolean =>
  decision.outcome === 'allowed' && decision.withoutStore === true

/** Expects both replicas to count new clients of other nodes exactly. */
async function expectExactElsewhere({ first, second, client, count }: Scene): Promise<void> {
  const clients = Array.from({ length: 10 }, () => client('elsewhere'))
  for (const each of clients) {
    const decisions = await decideAtOnce([first, second], 12, chargeAll(each, [login, burst]))
    expect(countAllowed(decisions)).toBe(5)
    expect(decisions.filter(isWithoutRedis)).toEqual([])
    expect(await count(each)).toBe('5')
  }
}

test('a hanging master affects its own clients only, and later gets their admitted requests once', async () => {
  const scene = await openScene(0)
  const { first, second, failing, name, client, count } = scene
  await failing.signal('SIGSTOP')

  // Before the failure is detected, a request of the failing node waits, but a request of another node does not.
  let isAnswered = false
  const waiting = Promise.resolve(first.decide(chargeAll(client('there'), [login]))).then((decision) => {
    isAnswered = true
    return decision
  })
  const elsewhere = await first.decide(chargeAll(client('elsewhere'), [login]))
  expect(isAnswered).toBe(false)
  expect(elsewhere).toMatchObject({ outcome: 'allowed' })
  expect(isWithoutRedis(elsewhere)).toBe(false)
  expect(isWithoutRedis(await waiting)).toBe(true)

  await untilOpen(scene)
  expect(first.storeState()).toBe('unavailable')
  expect(first.unavailableNodes?.()).toEqual([name])
  expect(second.unavailableNodes?.()).toEqual([])
  await expectExactElsewhere(scene)

  // The node's own clients are decided at once, in this process.
  const own = client('there')
  const decisions = Array.from({ length: 9 }, () => first.decide(chargeAll(own, [login, burst])))
  expect(decisions.filter((decision) => decision instanceof Promise)).toEqual([])
  expect(countAllowed(decisions.flatMap((decision) => (decision instanceof Promise ? [] : [decision])))).toBe(
    5,
  )
  expect(await first.decide(chargeAll(client('there'), [strict]))).toEqual({
    outcome: 'unavailable',
    uncertain: false,
  })
  expect(await first.decide(chargeAll(client('there'), [lenient]))).toMatchObject({
    outcome: 'allowed',
    states: [],
  })

  // Requests with counters on both nodes: the other node stays exact, and nothing is counted if either counter refuses.
  const [away, near] = [client('there'), client('elsewhere')]
  const wide = makePolicy('wide', 7, 60_000)
  const both = [
    { policy: login, partitionKey: away },
    { policy: wide, partitionKey: near },
  ]
  const mixed = await decideAtOnce([first], 9, both)
  expect(countAllowed(mixed)).toBe(5)
  await eventually('all is counted', async () => expect(await count(near, 'wide:60000')).toBe('5'))
  expect(countAllowed(await decideAtOnce([second], 9, chargeAll(near, [wide])))).toBe(2)
  expect(
    await first.decide([
      { policy: strict, partitionKey: client('there') },
      { policy: wide, partitionKey: near },
    ]),
  ).toMatchObject({ outcome: 'unavailable' })

  await failing.signal('SIGCONT')
  await waitUntilAnswering(first)
  for (const each of [own, away])
    await eventually('it is added', async () => expect(await count(each)).toBe('5'))
  expect(await second.decide(chargeAll(own, [login]))).toMatchObject({ outcome: 'refused', refusedBy: login })
  expect(await second.decide(chargeAll(own, [burst]))).toMatchObject({ outcome: 'refused', refusedBy: burst })
  expect(first.telemetry.breakerNodes).toEqual([name, name])
  expect(first.telemetry.breaker).toEqual(['open', 'closed'])
  const told = first.logLines.filter(({ msg }) => msg.includes('circuit breaker'))
  expect(told).toMatchObject([{ node: name }, { node: name }])
})

test('a killed master affects its own clients only, and its successor gets their admitted requests', async () => {
  const scene = await openScene(1)
  const { first, second, failing, name, client, count } = scene
  await failing.signal('SIGKILL')
  await untilOpen(scene)
  const own = client('there')
  expect(countAllowed(await decideAtOnce([first], 9, chargeAll(own, [login, burst])))).toBe(5)
  await expectExactElsewhere(scene)

  await waitUntilAnswering(first)
  await eventually('it is added', async () => expect(await count(own)).toBe('5'))
  await eventually('the second one knows the successor', async () => {
    const decision = await second.decide(chargeAll(own, [login]))
    return decision.outcome === 'refused' && !isWithoutRedis(decision)
  })
  expect(await count(own)).toBe('5')
  await expectExactElsewhere(scene)
  expect(first.telemetry.breakerNodes).toEqual([name, name])
})

test('a replica that takes over learns the requests in flight and the ends that it has missed', async () => {
  const scene = await openScene(1)
  const { cluster, first, failing, client } = scene
  const operator = cluster.nodes[3]?.operator
  if (!operator) throw new Error('no replica')
  await operator.readonly()
  const own = client('there')
  const charges = chargeAll(own, [exports])
  const readNames = (): Promise<string[]> => operator.zrange(`sluice:1:{${own}}:exports:in-flight`, '0', '-1')
  const ended = (await decideAtOnce([first], 3, charges)).flatMap(reservationsOf)
  await eventually('the replica knows them', async () => expect(await readNames()).toHaveLength(3))

  await failing.signal('SIGKILL')
  await untilOpen(scene)
  for (const reservation of ended) first.settle(reservation, 0)
  const [begun] = reservationsOf(await first.decide(charges))
  await eventually('the replica has taken over', () => first.storeState() === 'available')
  await eventually(
    'it knows who is in flight',
    async () => expect(await readNames()).toEqual([begun?.ticket]),
    // It forgets the others itself, 15 seconds after they began.
    { endMs: 6_000 },
  )
})
